/**
 * Generates `packages/protocol/src/gen/` from `spec/`.
 *
 *   npm run gen               write the files
 *   npm run gen -- --check    fail when the committed files are not what spec/ says
 */
import { join } from 'node:path';
import { generateEnvd } from './envd.ts';
import { drift, writeFiles } from './files.ts';
import { generateOpenapi } from './openapi.ts';

const ROOT = join(import.meta.dirname, '../..');
const OUTPUT = join(ROOT, 'packages/protocol/src/gen');

const files = new Map([...generateEnvd(ROOT), ...(await generateOpenapi(ROOT))]);
if (process.argv.includes('--check')) {
  const problems = drift(OUTPUT, files);
  for (const problem of problems) console.error(`packages/protocol/src/gen/${problem}`);
  if (problems.length > 0) {
    console.error('run `npm run gen` and commit the result');
    process.exit(1);
  }
  console.log(`gen: ${files.size} files are up to date`);
} else {
  writeFiles(OUTPUT, files);
  console.log(`gen: wrote ${files.size} files`);
}
