import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { createMetricsRegistry, mayReadMetrics, withMetrics } from './metrics.ts';

const stats = () => ({
  running: 3,
  paused: 2,
  slotsReady: 4,
  pool: { ready: 2, hits: 7, misses: 3 },
  operations: { create: { succeeded: 5, failed: 1, seconds: 2.5 } },
});
const isApiKey = (key: string) => key === 'right';

function request(remoteAddress: string, headers: Record<string, string> = {}): IncomingMessage {
  return { headers, socket: { remoteAddress } } as unknown as IncomingMessage;
}

test('metrics show the state and the operations, each counted once however often they are read', async () => {
  const registry = createMetricsRegistry(stats);
  await registry.metrics();
  const text = await registry.metrics();
  assert.match(text, /^aenv_sandboxes\{state="running"\} 3$/m);
  assert.match(text, /^aenv_sandboxes\{state="paused"\} 2$/m);
  assert.match(text, /^aenv_network_slots_ready 4$/m);
  assert.match(text, /^aenv_pool_ready 2$/m);
  assert.match(text, /^aenv_pool_claims_total\{outcome="hit"\} 7$/m);
  assert.match(text, /^aenv_operations_total\{operation="create",outcome="succeeded"\} 5$/m);
  assert.match(text, /^aenv_operations_total\{operation="create",outcome="failed"\} 1$/m);
  assert.match(text, /^aenv_operation_seconds_total\{operation="create"\} 2.5$/m);
  assert.match(text, /^process_resident_memory_bytes /m);
});

test('who may read them', () => {
  const cases: [IncomingMessage, boolean][] = [
    [request('127.0.0.1'), true],
    [request('::ffff:127.0.0.1'), true],
    [request('::1'), true],
    [request('192.0.2.7'), false],
    [request('192.0.2.7', { 'x-api-key': 'right' }), true],
    [request('192.0.2.7', { authorization: 'Bearer right' }), true],
    [request('192.0.2.7', { 'x-api-key': 'wrong' }), false],
    [request('127.0.0.1', { 'x-api-key': 'wrong' }), false],
    [request('127.0.0.1', { 'x-forwarded-for': '192.0.2.7' }), false],
    [request('127.0.0.1', { forwarded: 'for=192.0.2.7' }), false],
  ];
  for (const [incoming, allowed] of cases) assert.equal(mayReadMetrics(incoming, isApiKey), allowed);
});

test('GET /metrics is answered here, the rest goes on', async (t) => {
  const registry = createMetricsRegistry(stats);
  const server = createServer(withMetrics(registry, isApiKey, (_, response) => response.writeHead(418).end('next')));
  t.after(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const metrics = await fetch(`${base}/metrics?x=1`);
  assert.equal(metrics.status, 200);
  assert.match(await metrics.text(), /aenv_sandboxes/);
  const denied = await fetch(`${base}/metrics`, { headers: { 'X-Forwarded-For': '192.0.2.7' } });
  assert.equal(denied.status, 401);
  assert.equal(((await denied.json()) as { error_code: string }).error_code, 'unauthorized');
  for (const [path, method] of [
    ['/metrics', 'POST'],
    ['/metricsx', 'GET'],
    ['/sandboxes', 'GET'],
  ]) {
    assert.equal((await fetch(`${base}${path}`, { method })).status, 418, `${method} ${path}`);
  }
});
