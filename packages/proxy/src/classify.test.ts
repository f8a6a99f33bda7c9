import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Classified, classify, type RequestHeaders } from './classify.ts';
import { endToEnd } from './headers.ts';

const CONTROL = 'api.example.com';
const to = (sandboxId: string, port: number, path: string): Classified => ({
  kind: 'sandbox',
  target: { sandboxId, port, path },
});
const kindOf = (headers: RequestHeaders, url = '/', host = CONTROL) => classify(host, headers, url, []).kind;

test('a request without any address is for the API', () => {
  assert.equal(kindOf({}), 'control');
  assert.equal(kindOf({}, '/sandboxes'), 'control');
  assert.equal(kindOf({}, '/proxyless'), 'control');
  assert.equal(classify(undefined, {}, '/', []).kind, 'control');
});

test('every form of address leads to the same port', () => {
  const e2b = { 'e2b-sandbox-id': 'iabc', 'e2b-sandbox-port': '49983' };
  const agentenv = { 'x-agentenv-sandbox-id': 'iabc', 'x-agentenv-target-port': '49983' };
  const expected = to('iabc', 49_983, '/files?path=/a');
  assert.deepEqual(classify(CONTROL, e2b, '/files?path=/a', []), expected);
  assert.deepEqual(classify(CONTROL, agentenv, '/files?path=/a', []), expected);
  assert.deepEqual(classify(CONTROL, agentenv, '/proxy/files?path=/a', []), expected);
  assert.deepEqual(classify('49983-iabc.example.com', {}, '/files?path=/a', ['example.com']), expected);
  assert.deepEqual(classify('49983-IABC.Example.Com:8000', {}, '/files?path=/a', ['example.com']), expected);
  assert.deepEqual(classify('49983-iabc.anything', {}, '/files?path=/a', []), expected);
});

test('the older ids of E2B, with a client behind a dash, name the same sandbox', () => {
  const headers = { 'e2b-sandbox-id': 'iabc-6532622b', 'e2b-sandbox-port': '80' };
  assert.deepEqual(classify(CONTROL, headers, '/', []), to('iabc', 80, '/'));
});

test('the prefix goes, and what is behind it stays', () => {
  const headers = { 'e2b-sandbox-id': 'iabc', 'e2b-sandbox-port': '80' };
  const pathOf = (url: string) => {
    const found = classify(CONTROL, headers, url, []);
    return found.kind === 'sandbox' ? found.target.path : found.kind;
  };
  assert.equal(pathOf('/proxy'), '/');
  assert.equal(pathOf('/proxy/'), '/');
  assert.equal(pathOf('/proxy?a=b'), '/?a=b');
  assert.equal(pathOf('/proxy/proxy/x'), '/proxy/x');
  assert.equal(pathOf('/proxyless'), '/proxyless');
});

test('the name of a host counts before headers, and only under our domains', () => {
  const headers = { 'e2b-sandbox-id': 'iother', 'e2b-sandbox-port': '1' };
  assert.deepEqual(classify('80-iabc.example.com', headers, '/', ['example.com']), to('iabc', 80, '/'));
  assert.equal(classify('80-iabc.elsewhere.com', {}, '/', ['example.com']).kind, 'control');
  assert.equal(classify('70000-iabc.example.com', {}, '/', ['example.com']).kind, 'control');
  assert.equal(classify('0-iabc.example.com', {}, '/', ['example.com']).kind, 'control');
});

test('half an address is refused', () => {
  assert.equal(kindOf({ 'e2b-sandbox-id': 'iabc' }), 'invalid');
  assert.equal(kindOf({}, '/proxy/'), 'invalid');
  assert.equal(kindOf({ 'e2b-sandbox-id': '../x', 'e2b-sandbox-port': '80' }), 'invalid');
  assert.equal(kindOf({ 'e2b-sandbox-id': '', 'e2b-sandbox-port': '80' }), 'invalid');
  for (const port of ['0', '65536', '-1', '1e3', '8 0', '', '٣', '080x']) {
    assert.equal(kindOf({ 'e2b-sandbox-id': 'iabc', 'e2b-sandbox-port': port }), 'invalid', port);
  }
});

test('whatever comes in, what goes out is an id, a port and a path', () => {
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: fc.constantFrom('i', 'a', '0', '9', '-', '.', ':', '/', 'P', '%', '\0') }),
    fc.constantFrom('80-iabc.example.com', 'iabc', '65535', '/proxy/x', '/proxy'),
  );
  const headers = fc.dictionary(
    fc.constantFrom('e2b-sandbox-id', 'e2b-sandbox-port', 'x-agentenv-sandbox-id', 'x-agentenv-target-port', 'x'),
    fc.oneof(text, fc.array(text), fc.constant(undefined)),
  );
  fc.assert(
    fc.property(fc.option(text, { nil: undefined }), headers, text, (host, given, url) => {
      const found = classify(host, given, url, ['example.com']);
      if (found.kind !== 'sandbox') return;
      assert.match(found.target.sandboxId, /^[a-z0-9]{1,40}$/);
      assert.ok(Number.isInteger(found.target.port) && found.target.port >= 1 && found.target.port <= 65_535);
      assert.ok(url.endsWith(found.target.path.replace(/^\//, '')));
    }),
    { numRuns: 2000 },
  );
});

test('headers that are meant for the next hop, or for us, do not pass', () => {
  const kept = endToEnd({
    ':path': '/',
    connection: 'close, X-Mine',
    'x-mine': 'secret of the hop',
    'keep-alive': 'timeout=5',
    'transfer-encoding': 'chunked',
    te: 'trailers',
    upgrade: 'h2c',
    'proxy-authorization': 'secret',
    'e2b-sandbox-id': 'iabc',
    'e2b-sandbox-port': '80',
    'e2b-traffic-access-token': 'secret',
    'x-agentenv-sandbox-id': 'iabc',
    'x-agentenv-target-port': '80',
    'set-cookie': ['a=1', 'b=2'],
    'content-type': 'text/plain',
    missing: undefined,
  });
  assert.deepEqual(kept, { 'set-cookie': ['a=1', 'b=2'], 'content-type': 'text/plain' });
});
