/** The SDK through the API to the real orchestrator, whose host, VMs and guests are fakes: what the fake engine assumes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '@aenv/std';
import { BuildError, Sandbox, SandboxNotFoundError, Template } from 'e2b';
import { Harness } from '../../orchestrator/src/testing/harness.ts';
import { createApi } from './index.ts';
import { API_KEY, listen } from './testing/harness.ts';

test('a template, its sandboxes through all their states, and the end of both', async () => {
  await using machine = await Harness.create();
  await using cleanup = new AsyncDisposableStack();
  const engine = await machine.start();
  cleanup.defer(() => engine.close());
  const api = createApi({
    engine,
    isApiKey: (key) => key === API_KEY,
    version: '0',
    domain: null,
    logger: silentLogger,
    limits: { bodyBytes: 65_536 },
  });
  cleanup.defer(() => api.close());
  const server = cleanup.use(await listen({ api }));
  const options = { apiUrl: server.url, apiKey: API_KEY };

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
