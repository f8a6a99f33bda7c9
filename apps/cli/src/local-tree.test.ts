import assert from 'node:assert/strict';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { AenvError } from '@aenv/std';
import fc from 'fast-check';
import { checkedName } from './local-tree.ts';

test('names that would leave the directory are refused', () => {
  for (const name of ['', '.', '..', '../x', 'a/b', '/etc/passwd', 'a\0b']) {
    assert.throws(
      () => checkedName(name),
      (error) => error instanceof AenvError && error.code === 'forbidden',
    );
  }
});

test('whatever is accepted stays directly below the target', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.constantFrom('..', '.', 'a/..', '...', '..a')), (name) => {
      try {
        checkedName(name);
      } catch {
        return;
      }
      const path = resolve(join('/target', name));
      assert.ok(path.startsWith('/target/') && !path.slice('/target/'.length).includes('/'));
    }),
  );
});
