import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/std';
import fc from 'fast-check';
import { formatReference, parseReference } from './reference.ts';

const DIGEST = `sha256:${'0123456789abcdef'.repeat(4)}`;

const GOOD: Record<string, string> = {
  ubuntu: 'docker.io/library/ubuntu:latest',
  'ubuntu:22.04': 'docker.io/library/ubuntu:22.04',
  'e2bdev/base': 'docker.io/e2bdev/base:latest',
  'docker.io/ubuntu': 'docker.io/library/ubuntu:latest',
  'index.docker.io/a/b:c': 'docker.io/a/b:c',
  'docker://ghcr.io/x/y:z': 'ghcr.io/x/y:z',
  'ghcr.io/a/b/c/d:T_.-1': 'ghcr.io/a/b/c/d:T_.-1',
  'localhost/app': 'localhost/app:latest',
  'localhost:5000/app:1': 'localhost:5000/app:1',
  '127.0.0.1:5000/app': '127.0.0.1:5000/app:latest',
  '[::1]:5000/app': '[::1]:5000/app:latest',
  'Registry/app': 'Registry/app:latest',
  'host:80/a': 'host:80/a:latest',
  'a__b/c.d-e--f': 'docker.io/a__b/c.d-e--f:latest',
  [`ubuntu@${DIGEST}`]: `docker.io/library/ubuntu@${DIGEST}`,
  [`r.io/a:1@${DIGEST}`]: `r.io/a:1@${DIGEST}`,
  'oci:/srv/layout': 'oci:/srv/layout',
  'oci:/srv/../srv//layout:v1': 'oci:/srv/layout:v1',
  'docker-archive:/a.tar': 'docker-archive:/a.tar',
  'docker-archive:/a.tar:r.io:5000/a:1': 'docker-archive:/a.tar:r.io:5000/a:1',
};

const BAD = [
  '',
  ' ',
  'Ubuntu',
  'a//b',
  '/a',
  'a/',
  'a:',
  'a:b:c',
  'a@',
  'a@sha256:abc',
  `a@md5:${'0'.repeat(32)}`,
  `a@${DIGEST.toUpperCase()}`,
  'a@b@c',
  'a:-tag',
  `a:${'t'.repeat(129)}`,
  'a..b',
  'a___b',
  '-a',
  'a-',
  'localhost:/a',
  'localhost:0/a',
  'localhost:65536/a',
  'localhost:8x/a',
  'ho_st.io/a',
  '-host.io/a',
  '[::1/a',
  '[x]:5000/a',
  'user:password@host.io/a',
  'host.io:80:80/a',
  'https://ghcr.io/a',
  'a b',
  'a\nb',
  'a\0b',
  'a%2e',
  '../a',
  'ä',
  'a'.repeat(256),
  'a'.repeat(5000),
  'oci:relative',
  'oci:/a:b:c',
  'oci:/a\0',
  'oci:',
  'docker-archive:a.tar',
  'docker-archive:/a:',
];

for (const [text, canonical] of Object.entries(GOOD)) {
  test(`${text} is ${canonical}`, () => {
    assert.equal(formatReference(parseReference(text)), canonical);
  });
}

for (const text of BAD) {
  test(`${JSON.stringify(text).slice(0, 60)} is refused`, () => {
    assert.throws(
      () => parseReference(text),
      (error: unknown) => error instanceof AenvError && error.code === 'image_reference_invalid' && !!error.remedy,
    );
  });
}

test('any text is either refused with a typed error or has a canonical form that parses to itself', () => {
  const piece = fc.constantFrom(...'aA0._-:/@[]% \n\0ä', 'sha256:', 'localhost', 'docker.io', DIGEST, 'oci:/', '..');
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(piece, { maxLength: 12 }).map((list) => list.join('')),
  );
  fc.assert(
    fc.property(text, (input) => {
      let canonical: string;
      try {
        canonical = formatReference(parseReference(input));
      } catch (error) {
        assert.ok(error instanceof AenvError && error.code === 'image_reference_invalid', String(error));
        // What is shown is fit for a terminal.
        assert.match(error.message, /^[\x20-\x7e“”…]*$/u);
        return;
      }
      assert.equal(formatReference(parseReference(canonical)), canonical);
    }),
    { numRuns: 3000 },
  );
});

test('a registry reference never leads out of its API path', () => {
  const text = fc.array(fc.constantFrom(...'a0./_-:@', '..', '%2f', '?', '#'), { minLength: 1, maxLength: 10 });
  fc.assert(
    fc.property(text, (parts) => {
      let reference: ReturnType<typeof parseReference>;
      try {
        reference = parseReference(parts.join(''));
      } catch {
        return;
      }
      assert.ok(reference.kind === 'registry');
      const path = `/v2/${reference.repository}/manifests/${reference.tag}`;
      assert.equal(new URL(path, 'http://host').pathname, path);
    }),
    { numRuns: 2000 },
  );
});
