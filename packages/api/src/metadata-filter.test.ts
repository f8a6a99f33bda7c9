import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseMetadataFilter } from './metadata-filter.ts';

/** What E2B's SDKs put into the query, before the query itself is encoded. */
function asSdk(metadata: Record<string, string>): string {
  const encoded = Object.entries(metadata).map(([k, v]) => [encodeURIComponent(k), encodeURIComponent(v)]);
  return new URLSearchParams(Object.fromEntries(encoded)).toString();
}

test('whatever an SDK encodes comes back', () => {
  const text = fc.string({ unit: 'grapheme', minLength: 1 });
  fc.assert(
    fc.property(fc.dictionary(text, text, { minKeys: 1 }), (metadata) => {
      assert.deepEqual({ ...parseMetadataFilter(asSdk(metadata)) }, { ...metadata });
    }),
  );
});

test('no filter and an empty one match everything', () => {
  assert.equal(parseMetadataFilter(undefined), undefined);
  assert.equal(parseMetadataFilter(''), undefined);
});

test('any other text is read or refused, but never crashes', () => {
  assert.throws(() => parseMetadataFilter('a=%25zz'), { code: 'bad_request' });
  fc.assert(
    fc.property(fc.string(), (text) => {
      try {
        parseMetadataFilter(text);
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'bad_request');
      }
    }),
  );
});
