import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseChallenges } from './challenge.ts';

test('a bearer challenge as Docker Hub sends it', () => {
  const header =
    'Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull,push"';
  assert.deepEqual(parseChallenges(header), [
    {
      scheme: 'bearer',
      parameters: {
        realm: 'https://auth.docker.io/token',
        service: 'registry.docker.io',
        scope: 'repository:a/b:pull,push',
      },
    },
  ]);
});

test('several challenges, in one header or in several', () => {
  const expected = [
    { scheme: 'bearer', parameters: { realm: 'https://x/"y"', service: 'z' } },
    { scheme: 'basic', parameters: { realm: 'a, b' } },
    { scheme: 'negotiate', parameters: {} },
  ];
  const bearer = 'BEARER realm="https://x/\\"y\\"", Service=z';
  assert.deepEqual(parseChallenges(`${bearer}, Basic realm="a, b", Negotiate`), expected);
  assert.deepEqual(parseChallenges([bearer, 'Basic realm="a, b"', 'Negotiate']), expected);
});

test('no header, and nonsense, are no challenge', () => {
  for (const header of [undefined, '', ',', '"x"', '=', `Basic realm="${'a'.repeat(9000)}"`]) {
    assert.deepEqual(parseChallenges(header), []);
  }
});

test('whatever comes is read in short time', () => {
  const text = fc.array(fc.constantFrom('Bearer', ' ', ',', '=', '"', '\\', 'a', 'realm="x"', '\n'), {
    maxLength: 200,
  });
  fc.assert(
    fc.property(text, (parts) => {
      const start = performance.now();
      parseChallenges(parts.join(''));
      assert.ok(performance.now() - start < 200);
    }),
  );
});
