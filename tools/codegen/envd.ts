/** Generates the messages and service descriptions of the guest daemon's protocol with buf and protoc-gen-es. */
import { execFileSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { GeneratedFiles } from './files.ts';

// `.ts` imports and erasable syntax, because Node runs the result without a compiler.
const PLUGIN_OPTIONS = ['target=ts', 'import_extension=ts', 'erasable_syntax=true'];

/** `root` is the checkout; the keys of the result are paths below `packages/protocol/src/gen/`. */
export function generateEnvd(root: string): GeneratedFiles {
  const out = mkdtempSync(join(tmpdir(), 'aenv-codegen-'));
  try {
    const template = { version: 'v2', plugins: [{ local: 'protoc-gen-es', out, opt: PLUGIN_OPTIONS }] };
    const binaries = join(root, 'node_modules/.bin');
    execFileSync(join(binaries, 'buf'), ['generate', 'spec/envd', '--template', JSON.stringify(template)], {
      cwd: root,
      env: { ...process.env, PATH: `${binaries}:${process.env.PATH}` },
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const files: GeneratedFiles = new Map();
    for (const name of globSync('**/*.ts', { cwd: out }).sort()) {
      files.set(join('envd', name), readFileSync(join(out, name), 'utf8'));
    }
    if (files.size === 0) throw new Error('buf generated nothing from spec/envd');
    return files;
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}
