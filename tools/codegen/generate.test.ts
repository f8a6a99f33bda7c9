import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { drift, type GeneratedFiles, writeFiles } from './files.ts';

test('the committed files are what spec/ says', () => {
  const output = execFileSync(process.execPath, [join(import.meta.dirname, 'generate.ts'), '--check'], {
    encoding: 'utf8',
  });
  assert.match(output, /up to date/);
});

test('a file that differs, is missing or is left over is drift, and writing repairs all three', () => {
  const directory = mkdtempSync(join(tmpdir(), 'aenv-codegen-test-'));
  try {
    const files: GeneratedFiles = new Map([
      ['a.ts', 'a'],
      ['deep/er/b.ts', 'b'],
    ]);
    assert.equal(drift(directory, files).length, 2);
    writeFiles(directory, files);
    assert.deepEqual(drift(directory, files), []);
    writeFileSync(join(directory, 'a.ts'), 'edited');
    writeFileSync(join(directory, 'deep/old.ts'), 'left over');
    assert.deepEqual(drift(directory, files), [
      'a.ts: differs from what spec/ says',
      'deep/old.ts: nothing generates it',
    ]);
    writeFiles(directory, files);
    assert.deepEqual(drift(directory, files), []);
    assert.equal(readFileSync(join(directory, 'a.ts'), 'utf8'), 'a');
    assert.deepEqual(readdirSync(join(directory, 'deep')), ['er']);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
