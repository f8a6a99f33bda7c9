/** Every operation of the contract is served, and nothing else; each answers a stranger, a known failure and a bug right. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { OPERATION_IDS, type OperationId, operationInfo } from '@aenv/protocol';
import { AenvError, ERROR_CODES, type ErrorCode } from '@aenv/std';
import fastify from 'fastify';
import { bindOperations, type Handlers } from './binder.ts';
import { API_KEY, assertAnswer, NOWHERE, newHarness, pathOf, REFUSED, SERVED } from './testing/harness.ts';

/** The smallest body that an operation takes. */
const BODIES: Partial<Record<OperationId, unknown>> = {
  createSandbox: { templateID: 'nothing' },
  createSandboxV2: { templateID: 'nothing' },
  createColdSandbox: { image: 'debian' },
  connectSandbox: { timeout: 1 },
  setSandboxTimeout: { timeout: 1 },
  requestTemplate: { name: 'new' },
  requestTemplateV2: { alias: 'new' },
  startBuild: { fromImage: 'debian' },
  rollbackSandbox: { snapshotID: 'nothing' },
};
const QUERIES: Partial<Record<OperationId, Record<string, string>>> = { listSandboxMetrics: { sandbox_ids: 'i1' } };
const smallest = (id: OperationId) => ({ params: NOWHERE, body: BODIES[id], query: QUERIES[id] });

test('the routes are those of the contract and no other', async () => {
  const app = fastify({ exposeHeadRoutes: false });
  const routes: string[] = [];
  app.addHook('onRoute', ({ method, url }) => void routes.push(`${method} ${url}`));
  bindOperations(app, {} as Handlers, () => true);
  const contract = OPERATION_IDS.map((id) => {
    const { method, path } = operationInfo(id);
    return `${method} ${path.replaceAll('{', ':').replaceAll('}', '')}`;
  });
  assert.deepEqual(routes.sort(), contract.sort());
  await app.close();
});

test('methods that the contract does not have for a path are not found', async () => {
  await using harness = newHarness();
  const known = new Set(OPERATION_IDS.map((id) => `${operationInfo(id).method} ${pathOf(id)}`));
  for (const url of new Set(OPERATION_IDS.map((id) => pathOf(id)))) {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'] as const) {
      if (known.has(`${method} ${url}`) || url === '/sandboxes/metrics') continue;
      const response = await harness.api.inject({ method, url, headers: { 'x-api-key': API_KEY } });
      assert.equal(response.statusCode, 404, `${method} ${url}`);
    }
  }
});

for (const id of OPERATION_IDS) {
  test(`${id}: without a valid key it answers 401, before it reads the body`, async () => {
    await using harness = newHarness();
    for (const headers of [{ 'x-api-key': '' }, { 'x-api-key': `${API_KEY}0` }, { authorization: 'Bearer nonsense' }]) {
      const response = await harness.api.inject({
        method: operationInfo(id).method,
        url: pathOf(id, NOWHERE),
        headers: { ...headers, 'content-type': 'application/json' },
        ...(operationInfo(id).method === 'GET' ? {} : { payload: '{broken' }),
      });
      if (id === 'health') {
        assert.equal(response.statusCode, 204);
        continue;
      }
      assert.equal(response.statusCode, 401);
      assert.equal(response.json().error_code, 'unauthorized');
      assert.match(response.json().remedy, /X-API-Key/);
    }
  });
}

test('the key is taken as a bearer token where the contract says so, with and without sk_, and only there', async () => {
  await using harness = newHarness();
  for (const id of SERVED.filter((operation) => operation !== 'health')) {
    const allowed = operationInfo(id).security.includes('Bearer');
    for (const authorization of [`Bearer ${API_KEY}`, `bearer sk_${API_KEY}`]) {
      const { status } = await harness.call(id, { ...smallest(id), headers: { 'x-api-key': '', authorization } });
      assert.equal(status !== 401, allowed, id);
    }
  }
});

for (const id of REFUSED) {
  test(`${id} is refused with its reason`, async () => {
    await using harness = newHarness();
    const { status, body } = await harness.call(id, { params: NOWHERE });
    assert.equal(status, 400);
    assert.equal(body.error_code, 'unsupported');
    assert.equal(body.message, operationInfo(id).refused);
  });
}

/** The engine's method behind each operation that can fail. */
const METHODS = {
  doctor: 'doctor',
  createSandbox: 'createSandbox',
  createSandboxV2: 'createSandbox',
  createColdSandbox: 'createCold',
  listSandboxes: 'listSandboxes',
  getSandbox: 'getSandbox',
  killSandbox: 'killSandbox',
  pauseSandbox: 'pauseSandbox',
  resumeSandbox: 'resumeSandbox',
  connectSandbox: 'connectSandbox',
  connectSandboxV2: 'connectSandbox',
  setSandboxTimeout: 'setTimeout',
  refreshSandbox: 'refresh',
  getSandboxMetrics: 'sandboxMetrics',
  getSandboxLogs: 'sandboxLogs',
  getSandboxLogsV2: 'sandboxLogs',
  requestTemplate: 'createTemplate',
  getTemplate: 'getTemplate',
  deleteTemplate: 'deleteTemplate',
} as const;

for (const code of Object.keys(ERROR_CODES) as ErrorCode[]) {
  test(`a failure of the engine with ${code} reaches the client with its status, message and remedy`, async () => {
    await using harness = newHarness();
    for (const [id, method] of Object.entries(METHODS)) {
      harness.engine.fail(method, new AenvError(code, 'it failed', { remedy: 'try this', cause: new Error('secret') }));
      const { status, body } = await harness.call(id as OperationId, smallest(id as OperationId));
      harness.engine.fail(method, undefined);
      const expected = { code: ERROR_CODES[code].status, message: 'it failed', error_code: code, remedy: 'try this' };
      assert.equal(status, ERROR_CODES[code].status);
      assert.deepEqual(body, expected);
    }
  });
}

test('a bug of ours answers 500 without its text, and the text is in the log with the request id', async () => {
  await using harness = newHarness();
  harness.engine.fail('getSandbox', new Error('password is hunter2'));
  const { status, body, headers } = await harness.call('getSandbox', { params: NOWHERE });
  assert.equal(status, 500);
  assert.equal(body.error_code, 'internal');
  assert.doesNotMatch(JSON.stringify(body), /hunter2/);
  assert.ok(body.remedy.includes(headers['x-request-id']));
});

test('a full disk is told as such, even when nobody wrapped the error', async () => {
  await using harness = newHarness();
  harness.engine.fail('createCold', Object.assign(new Error('write'), { code: 'ENOSPC' }));
  const { status, body } = await harness.call('createColdSandbox', { body: { image: 'debian' } });
  assert.equal(status, 507);
  assert.equal(body.error_code, 'disk_full');
});

test('an unknown path is a typed 404, with or without a key', async () => {
  await using harness = newHarness();
  for (const url of ['/', '/v9/sandboxes', '/health/x', '//', '/%2e%2e/etc/passwd']) {
    const response = await harness.api.inject({ method: 'GET', url });
    assert.equal(response.statusCode, 404, url);
    assert.equal(response.json().error_code, 'not_found');
  }
});

test('a path that cannot be decoded is a bad request', async () => {
  await using harness = newHarness();
  const response = await harness.api.inject({
    method: 'GET',
    url: '/sandboxes/%zz',
    headers: { 'x-api-key': API_KEY },
  });
  assert.equal(response.statusCode, 400);
  assertAnswer('getSandbox', response.statusCode, response.json());
});

test('browsers may ask from any origin', async () => {
  await using harness = newHarness();
  const preflight = await harness.api.inject({ method: 'OPTIONS', url: '/v2/sandboxes' });
  assert.equal(preflight.statusCode, 204);
  assert.equal(preflight.headers['access-control-allow-origin'], '*');
  assert.match(String(preflight.headers['access-control-allow-headers']), /\*/);
  const { headers } = await harness.call('listSandboxes');
  assert.equal(headers['access-control-allow-origin'], '*');
  assert.match(String(headers['access-control-expose-headers']), /X-Next-Token/);
});

test('a harmless request id of the client is kept, any other replaced', async () => {
  await using harness = newHarness();
  const kept = await harness.call('listSandboxes', { headers: { 'x-request-id': 'abc-1.2' } });
  assert.equal(kept.headers['x-request-id'], 'abc-1.2');
  const replaced = await harness.call('listSandboxes', { headers: { 'x-request-id': 'a b' } });
  assert.match(String(replaced.headers['x-request-id']), /^[0-9a-f-]{36}$/);
});

test('docs/api.md lists every operation of the contract and no other', () => {
  const text = readFileSync(new URL('../../../docs/api.md', import.meta.url), 'utf8');
  const listed = [...text.matchAll(/`((?:GET|POST|PUT|PATCH|DELETE) \/[^`]*)`/g)].map((match) => match[1]);
  const contract = OPERATION_IDS.map((id) => `${operationInfo(id).method} ${operationInfo(id).path}`);
  assert.deepEqual([...new Set(listed)].sort(), contract.sort());
});
