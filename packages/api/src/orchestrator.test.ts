/** The SDK through the API to the real orchestrator, whose host, VMs and guests are fakes: what the fake engine assumes. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { silentLogger } from '@aenv/std';
import { BuildError, Sandbox, SandboxNotFoundError, Template } from 'e2b';
import { Harness } from '../../orchestrator/src/testing/harness.ts';
import { createApi } from './index.ts';
import { API_KEY, listen } from './testing/harness.ts';

/** A server over fake VMs, until the test ends. */
async function serve(t: TestContext) {
  const machine = await Harness.create();
  const engine = await machine.start();
  const api = createApi({
    engine,
    isApiKey: (key) => key === API_KEY,
    version: '0',
    domain: null,
    logger: silentLogger,
    limits: { bodyBytes: 65_536 },
  });
  const server = await listen({ api });
  t.after(async () => {
    await server[Symbol.asyncDispose]();
    await api.close();
    await engine.close();
    await machine[Symbol.asyncDispose]();
  });
  return { machine, options: { apiUrl: server.url, apiKey: API_KEY } };
}

test('a template, its sandboxes through all their states, and the end of both', async (t) => {
  const { machine, options } = await serve(t);
  const build = await Template.build(Template().fromImage('debian'), 'Web:v1', options);
  assert.equal(await Template.exists('web', options), true);
  const again = await Template.build(Template().fromImage('debian'), 'web:v2', options);
  assert.equal(again.templateId, build.templateId);
  assert.notEqual(again.buildId, build.buildId);

  const lifecycle = { onTimeout: 'pause', autoResume: true } as const;
  const sandbox = await Sandbox.create('web:v1', {
    ...options,
    lifecycle,
    metadata: { who: 'é/ü' },
    timeoutMs: 10_000,
  });
  const info = await sandbox.getInfo();
  assert.equal(info.name, 'web');
  assert.equal(info.endAt.getTime() - info.startedAt.getTime(), 10_000);
  assert.deepEqual(info.lifecycle, { onTimeout: 'pause', autoResume: true });
  const query = { metadata: { who: 'é/ü' }, template: 'web', state: ['running' as const] };
  const found = await Sandbox.list({ ...options, query }).nextItems();
  assert.deepEqual(
    found.map((item) => item.sandboxId),
    [sandbox.sandboxId],
  );

  assert.equal(await sandbox.pause(), true);
  assert.equal(await sandbox.pause(), false);
  await assert.rejects(sandbox.setTimeout(1000), SandboxNotFoundError);
  const resumed = await Promise.all([1, 2, 3].map(() => Sandbox.connect(sandbox.sandboxId, options)));
  assert.equal(new Set(resumed.map((item) => item.sandboxId)).size, 1);
  assert.equal((await sandbox.getInfo()).state, 'running');

  await assert.rejects(Sandbox.create('web:v1', { ...options, timeoutMs: 1e9 }), /400: .*86400 seconds/);
  await assert.rejects(Sandbox.create('nothing', options), /404/);
  await assert.rejects(Template.build(Template().fromImage('debian'), 'web/x', options), BuildError);

  assert.equal(await sandbox.kill(), true);
  assert.equal(await sandbox.kill(), false);
  await machine.assertNothingLeft();
});

test('snapshots, forks and rollbacks of a sandbox', async (t) => {
  const { machine, options } = await serve(t);
  await Template.build(Template().fromImage('debian'), 'web', options);
  const sandbox = await Sandbox.create('web', { ...options, metadata: { who: 'parent' } });
  const unnamed = await sandbox.createSnapshot();
  assert.match(unnamed.snapshotId, /^[a-z0-9]{20}:default$/);
  const named = await sandbox.createSnapshot({ name: 'Work:v1' });
  assert.deepEqual([named.snapshotId, named.names], ['work:v1', ['work:v1']]);
  const ids = async (query: { sandboxId?: string; name?: string }) =>
    (await Sandbox.listSnapshots({ ...options, ...query }).nextItems()).map(({ snapshotId }) => snapshotId);
  assert.deepEqual((await ids({})).sort(), [unnamed.snapshotId, 'work:v1'].sort());
  assert.deepEqual(await ids({ name: 'work' }), ['work:v1']);
  assert.deepEqual(await ids({ name: 'work:v2' }), []);
  assert.deepEqual(await ids({ name: 'nothing' }), []);
  assert.deepEqual((await ids({ sandboxId: sandbox.sandboxId })).length, 2);
  const copy = await Sandbox.create(unnamed.snapshotId, options);

  const children = (await sandbox.fork({ count: 3 })).map((child) =>
    child instanceof Sandbox ? child : assert.fail(child),
  );
  assert.equal(new Set(children.map((child) => child.sandboxId)).size, 3);
  assert.deepEqual((await children[0]?.getInfo())?.metadata, { who: 'parent' });

  const rollback = (body: unknown) =>
    fetch(`${options.apiUrl}/sandboxes/${sandbox.sandboxId}/rollback`, {
      method: 'POST',
      headers: { 'x-api-key': API_KEY, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  assert.equal((await rollback({ snapshotID: 'work:v1' })).status, 200);
  assert.equal((await rollback({ snapshotID: 'web' })).status, 409);
  assert.equal((await rollback({})).status, 400);

  await sandbox.pause();
  await assert.rejects(sandbox.createSnapshot(), /paused/);
  await assert.rejects(sandbox.fork(), /paused/);
  for (const gone of [sandbox, copy, ...children]) assert.equal(await gone.kill(), true);
  assert.equal(await Sandbox.deleteSnapshot(unnamed.snapshotId, options), true);
  assert.equal(await Sandbox.deleteSnapshot(unnamed.snapshotId, options), false);
  assert.equal(await Sandbox.deleteSnapshot('work:v1', options), true);
  await machine.assertNothingLeft();
});
