import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { isDeeperThan, MAX_JSON_DEPTH } from './bodies.ts';
import { API_KEY, assertAnswer, listen, NOWHERE, newHarness } from './testing/harness.ts';

/** Depth by recursion: what the scanner must agree with. */
function depth(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depth));
}

test('the scanner knows the depth of any document', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 8 }), fc.nat(10), (value, limit) => {
      assert.equal(isDeeperThan(JSON.stringify(value), limit), depth(value) > limit);
      assert.equal(isDeeperThan(JSON.stringify(value, null, 2), limit), depth(value) > limit);
    }),
  );
});

async function create(payload: string | Buffer, headers: Record<string, string> = {}) {
  await using harness = newHarness();
  harness.template();
  const response = await harness.api.inject({
    method: 'POST',
    url: '/sandboxes',
    headers: { 'x-api-key': API_KEY, 'content-type': 'application/json', ...headers },
    payload,
  });
  assertAnswer('createSandbox', response.statusCode, response.json());
  return { status: response.statusCode, body: response.json() };
}

test('a body as deep as allowed is read, one deeper is refused', async () => {
  // The document itself is one level.
  const nested = (levels: number) => `{"templateID":"base","unknown":${'['.repeat(levels)}${']'.repeat(levels)}}`;
  assert.equal((await create(nested(MAX_JSON_DEPTH - 1))).status, 201);
  const refused = await create(nested(MAX_JSON_DEPTH));
  assert.equal(refused.status, 400);
  assert.match(refused.body.message, /deeper than 32/);
  assert.equal((await create('['.repeat(60_000))).status, 400);
});

test('what is not JSON is refused with a reason', async () => {
  for (const payload of ['{', '{"templateID":}', 'templateID=base', '\u0000', '[]', '"x"', 'null', '1']) {
    const { status, body } = await create(payload);
    assert.equal(status, 400, payload);
    assert.equal(body.error_code, 'bad_request');
  }
  const wrongType = await create('{"templateID":"base"}', { 'content-type': 'text/plain' });
  assert.equal(wrongType.status, 400);
  assert.match(wrongType.body.remedy, /application\/json/);
});

test('invalid UTF-8 and prototype poisoning are refused', async () => {
  const bytes = Buffer.concat([
    Buffer.from('{"templateID":"base","metadata":{"k":"'),
    Buffer.of(0xff),
    Buffer.from('"}}'),
  ]);
  assert.match((await create(bytes)).body.message, /UTF-8/);
  assert.equal((await create('{"templateID":"base","metadata":{"__proto__":"x"}}')).status, 400);
});

test('a body above the limit is refused with 413', async () => {
  const { status, body } = await create(JSON.stringify({ templateID: 'base', metadata: { k: 'x'.repeat(70_000) } }));
  assert.equal(status, 413);
  assert.equal(body.error_code, 'payload_too_large');
});

test('a client that is still sending a body above the limit reads the refusal', async () => {
  await using harness = newHarness();
  await using server = await listen(harness);
  for (let round = 0; round < 30; round += 1) {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    const head = `POST /sandboxes HTTP/1.1\r\nhost: x\r\nx-api-key: ${API_KEY}\r\ncontent-type: application/json\r\n`;
    socket.write(`${head}content-length: ${4 << 20}\r\n\r\n`);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    assert.match(answer.toString(), /^HTTP\/1.1 413/);
    // What it sends after the answer meets no reset.
    for (let sent = 0; sent < 4; sent += 1) {
      await new Promise<void>((resolve, reject) =>
        socket.write(Buffer.alloc(1 << 20), (error) => (error ? reject(error) : resolve())),
      );
    }
    socket.destroy();
  }
});

test('operations with an optional body take none, with any content type; the others say that they need one', async () => {
  await using harness = newHarness();
  harness.template();
  const { body } = await harness.call('createSandboxV2', { body: { templateID: 'base' } });
  const post = async (path: string, headers: Record<string, string>) =>
    (await harness.api.inject({ method: 'POST', url: path, headers: { 'x-api-key': API_KEY, ...headers } })).statusCode;
  const variants: Record<string, string>[] = [
    {},
    { 'content-type': 'application/json' },
    { 'content-type': 'text/plain' },
  ];
  for (const headers of variants) {
    const id = body.sandboxID;
    assert.equal(await post(`/sandboxes/${id}/pause`, { ...headers, 'content-length': '0' }), 204);
    assert.equal(await post(`/v2/sandboxes/${id}/connect`, headers), 201);
    assert.equal(await post(`/sandboxes/${id}/refreshes`, headers), 204);
    assert.equal(await post(`/sandboxes/${id}/connect`, headers), 400);
    assert.equal(await post('/sandboxes', headers), 400);
  }
  const missing = await harness.call('setSandboxTimeout', { params: NOWHERE });
  assert.match(missing.body.message, /needs a JSON body/);
});
