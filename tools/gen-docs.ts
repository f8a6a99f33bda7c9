/**
 * Writes the pages of docs/ that repeat a table of the source: configuration.md, errors.md and lifecycle-table.md. With --check it writes
 * nothing and fails when a page is not what it would write. Either way it fails for a dependency without an entry in
 * docs/dependencies.md, which people write.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { configurationPage } from '../apps/server/src/config/help.ts';
import { answer, OPERATIONS, SANDBOX_PHASES } from '../packages/lifecycle/src/index.ts';
import { ERROR_CODES } from '../packages/std/src/errors.ts';

const NOTICE = '<!-- Written by tools/gen-docs.ts (make gen). Change the source, not this page. -->\n\n';

function errorsPage(): string {
  const rows = Object.entries(ERROR_CODES).map(
    ([code, { status, meaning }]) => `| \`${code}\` | ${status} | ${meaning} |`,
  );
  return [
    '# Errors',
    '',
    'Every failure has a code. Programs should look at the code, never at the message. The API answers with the HTTP',
    'status below and a body such as',
    '',
    '```json',
    '{ "code": 404, "message": "sandbox i4k… does not exist", "error_code": "sandbox_not_found", "remedy": "…" }',
    '```',
    '',
    "where `code` repeats the status (E2B's SDKs read it), `error_code` is the code of this table and `remedy`, where there is",
    'one, says what to do. The CLI prints message and remedy, and the code with `--output json`.',
    '',
    '| Code | HTTP status | Meaning |',
    '|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

/** Every operation in every phase, as `answer` has it. */
function lifecyclePage(): string {
  const cell = (operation: (typeof OPERATIONS)[number], phase: (typeof SANDBOX_PHASES)[number]): string => {
    const reply = answer(phase, operation);
    if (reply.kind === 'begin') return `begins: ${reply.phase}`;
    if (reply.kind === 'refuse') return `\`${reply.code}\` ${ERROR_CODES[reply.code].status}`;
    return { join: 'joins it', wait: 'waits', apply: 'applies' }[reply.kind];
  };
  return [
    '# What an operation gets in each phase',
    '',
    'From `packages/lifecycle`. *Begins*: the sandbox enters that phase. *Joins*: the same operation is under way, and its',
    'outcome is the answer. *Waits*: asked again when what is under way has ended. *Applies*: done at once, without a change of',
    'phase. [lifecycle.md](lifecycle.md) says what the phases are.',
    '',
    `| operation \\ phase | ${SANDBOX_PHASES.join(' | ')} |`,
    `|---|${SANDBOX_PHASES.map(() => '---|').join('')}`,
    ...OPERATIONS.map(
      (operation) => `| **${operation}** | ${SANDBOX_PHASES.map((phase) => cell(operation, phase)).join(' | ')} |`,
    ),
    '',
  ].join('\n');
}

const PAGES = { 'configuration.md': configurationPage, 'errors.md': errorsPage, 'lifecycle-table.md': lifecyclePage };

const check = process.argv.includes('--check');
process.chdir(join(import.meta.dirname, '..'));
const docs = 'docs';
const stale: string[] = [];
for (const [name, page] of Object.entries(PAGES)) {
  const file = join(docs, name);
  const text = NOTICE + page();
  if (!check) writeFileSync(file, text);
  else if (readFileSync(file, 'utf8') !== text) stale.push(`docs/${name}`);
}
/** Dependencies of any package.json or of go.mod that docs/dependencies.md says nothing about. */
function undocumented(): string[] {
  const page = readFileSync(join(docs, 'dependencies.md'), 'utf8');
  const names = new Set<string>();
  for (const file of globSync('{package.json,packages/*/package.json,apps/*/package.json,tools/*/package.json}')) {
    const manifest = JSON.parse(readFileSync(file, 'utf8')) as Record<string, Record<string, string> | undefined>;
    for (const kind of ['dependencies', 'devDependencies', 'optionalDependencies'])
      for (const name of Object.keys(manifest[kind] ?? {})) names.add(name);
  }
  for (const [, name = ''] of readFileSync('aenvd/go.mod', 'utf8').matchAll(/^(?:\t|require )(\S+) v\S+/gm))
    names.add(name);
  return [...names].filter((name) => !name.startsWith('@aenv/') && !page.includes(`\`${name}\``));
}

const missing = undocumented();
if (missing.length > 0) {
  console.error(`docs/dependencies.md says nothing about ${missing.join(', ')}`);
  process.exit(1);
}
if (stale.length > 0) {
  console.error(`${stale.join(', ')}: not what the source says; run: make gen`);
  process.exit(1);
}
console.log(check ? 'docs: generated pages are current' : 'docs: generated pages written');
