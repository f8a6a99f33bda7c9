import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { SETTINGS } from './settings.ts';

const ROOT = new URL('../../../../', import.meta.url).pathname;

test('every setting that an error tells people to change exists', () => {
  const keys: string[] = Object.values(SETTINGS).map(({ key }) => key);
  const sections = new Set(keys.filter((key) => key.includes('.')).map((key) => key.split('.')[0]));
  const files = globSync('{packages,apps}/*/src/**/*.ts', { cwd: ROOT }).filter((file) => !file.endsWith('.test.ts'));
  const named = files.flatMap((file) =>
    readFileSync(ROOT + file, 'utf8')
      .split('\n')
      .filter((line) => /remedy/i.test(line))
      .flatMap((line) => [...line.matchAll(/\b([a-z]+)\.[a-z]+(?:_[a-z]+)+\b/g)])
      .filter(([, section]) => section !== undefined && sections.has(section))
      .map(([key]) => key),
  );
  assert.ok(named.includes('template.memory_mb'), 'the search has found what is known to be there');
  assert.deepEqual(
    named.filter((key) => !keys.includes(key)),
    [],
  );
});
