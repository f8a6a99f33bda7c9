import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Harness, NOWHERE, newHarness } from '../testing/harness.ts';

/** Five sandboxes a second apart, oldest first; the second and the fourth are paused. */
async function five(harness: Harness): Promise<string[]> {
  harness.template();
  const ids: string[] = [];
  for (let n = 0; n < 5; n++) {
    const metadata = { n: String(n), parity: n % 2 === 0 ? 'even' : 'odd' };
    const { body } = await harness.call('createSandboxV2', { body: { templateID: 'base', metadata } });
    ids.push(body.sandboxID);
    harness.clock.advance(1000);
  }
  for (const id of [ids[1], ids[3]]) await harness.engine.pauseSandbox(id ?? '');
  return ids;
}

async function listed(harness: Harness, query: Record<string, string> = {}): Promise<string[]> {
  const { status, body } = await harness.call('listSandboxes', { query });
  assert.equal(status, 200, JSON.stringify(body));
  return body.map((sandbox: { sandboxID: string }) => sandbox.sandboxID);
}

test('both states are listed, newest first; ascending is the reverse', async () => {
  await using harness = newHarness();
  const ids = await five(harness);
  assert.deepEqual(await listed(harness), ids.toReversed());
  assert.deepEqual(await listed(harness, { order: 'asc' }), ids);
});

test('filters by state, metadata, start and template', async () => {
  await using harness = newHarness();
  const ids = await five(harness);
  assert.deepEqual(await listed(harness, { state: 'paused', order: 'asc' }), [ids[1], ids[3]]);
  assert.deepEqual(await listed(harness, { state: 'paused,running', order: 'asc' }), ids);
  assert.deepEqual(await listed(harness, { metadata: 'parity=odd', order: 'asc' }), [ids[1], ids[3]]);
  assert.deepEqual(await listed(harness, { metadata: 'parity=odd&n=3' }), [ids[3]]);
  assert.deepEqual(await listed(harness, { metadata: 'parity=none' }), []);
  const startedAfter = new Date(harness.clock.now() - 2000).toISOString();
  assert.deepEqual(await listed(harness, { startedAfter, order: 'asc' }), ids.slice(3));
  assert.equal((await listed(harness, { template: 'BASE' })).length, 5);
  assert.deepEqual(await listed(harness, { template: 'nothing' }), []);
});

test('values outside the contract are bad requests', async () => {
  await using harness = newHarness();
  const queries = [
    { state: 'sleeping' },
    { state: '' },
    { order: 'up' },
    { limit: '0' },
    { limit: '101' },
    { limit: 'x' },
    { limit: '' },
    { startedAfter: 'yesterday' },
    { template: 'base:tag' },
    { nextToken: 'garbage' },
    { metadata: 'a=%25' },
  ];
  for (const query of queries) {
    const { status, body } = await harness.call('listSandboxes', { query: query as unknown as Record<string, string> });
    assert.equal(status, 400, JSON.stringify(query));
    assert.equal(body.error_code, 'bad_request');
  }
});

test('pages by X-Next-Token, which only another page has; X-Total-Running counts all pages', async () => {
  await using harness = newHarness();
  const ids = await five(harness);
  const first = await harness.call('listSandboxes', { query: { limit: '3' } });
  assert.equal(first.headers['x-total-running'], '3');
  const nextToken = String(first.headers['x-next-token']);
  const second = await harness.call('listSandboxes', { query: { limit: '3', nextToken } });
  assert.equal(second.headers['x-next-token'], undefined);
  const all = [...first.body, ...second.body].map((sandbox) => sandbox.sandboxID);
  assert.deepEqual(all, ids.toReversed());
  assert.equal((await harness.call('listSandboxes', { query: { order: 'asc', nextToken } })).status, 400);
});

test('v1 lists running ones only, without a limit', async () => {
  await using harness = newHarness();
  const ids = await five(harness);
  const { body } = await harness.call('listRunningSandboxes', { query: { metadata: 'parity=even' } });
  assert.deepEqual(
    body.map((sandbox: { sandboxID: string }) => sandbox.sandboxID),
    [ids[4], ids[2], ids[0]],
  );
  for (let n = 0; n < 120; n++) await harness.call('createSandbox', { body: { templateID: 'base' } });
  assert.equal((await harness.call('listRunningSandboxes')).body.length, 123);
});

const SAMPLE = { cpuCount: 2, cpuUsedPct: 12.5, memUsed: 1, memTotal: 2, memCache: 0, diskUsed: 3, diskTotal: 4 };

test('metrics of one sandbox by range in seconds, and the newest of several', async () => {
  await using harness = newHarness();
  const [first = '', second = ''] = await five(harness);
  harness.engine.sandboxes.metrics = [10_500, 20_000].map((timestamp) => ({ timestamp, ...SAMPLE }));
  const params = { sandboxID: first };
  const { body } = await harness.call('getSandboxMetrics', { params, query: { start: '10', end: '11' } });
  assert.deepEqual(body, [{ ...SAMPLE, timestamp: '1970-01-01T00:00:10.500Z', timestampUnix: 10 }]);
  assert.equal((await harness.call('getSandboxMetrics', { params })).body.length, 2);
  assert.equal((await harness.call('getSandboxMetrics', { params, query: { start: '-1' } })).status, 400);
  const many = await harness.call('listSandboxMetrics', {
    query: { sandbox_ids: `${first},${second},${NOWHERE.sandboxID}` },
  });
  assert.deepEqual(Object.keys(many.body.sandboxes).sort(), [first, second].sort());
  assert.equal(many.body.sandboxes[first].timestampUnix, 20);
  assert.equal((await harness.call('listSandboxMetrics')).status, 400);
});

test('logs of a sandbox, v1 and v2', async () => {
  await using harness = newHarness();
  const [sandboxID = ''] = await five(harness);
  harness.engine.sandboxes.logs = [
    { timestamp: 1000, level: 'info', message: 'started', fields: { by: 'me' } },
    { timestamp: 2000, level: 'warn', message: 'odd' },
  ];
  const params = { sandboxID };
  const v1 = await harness.call('getSandboxLogs', { params, query: { start: '1500' } });
  assert.deepEqual(v1.body, {
    logs: [{ timestamp: '1970-01-01T00:00:02.000Z', line: '{"logger":"sandbox","level":"warn","message":"odd"}' }],
    logEntries: [{ timestamp: '1970-01-01T00:00:02.000Z', message: 'odd', level: 'warn', fields: {} }],
  });
  const messages = async (query: Record<string, string>) =>
    (await harness.call('getSandboxLogsV2', { params, query })).body.logs.map(
      (entry: { message: string }) => entry.message,
    );
  assert.deepEqual(await messages({}), ['started', 'odd']);
  assert.deepEqual(await messages({ direction: 'backward', limit: '1' }), ['odd']);
  assert.deepEqual(await messages({ level: 'warn' }), ['odd']);
  assert.deepEqual(await messages({ search: 'start', cursor: '0' }), ['started']);
  assert.equal((await harness.call('getSandboxLogsV2', { params, query: { level: 'fatal' } })).status, 400);
});
