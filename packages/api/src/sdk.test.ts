/** The unmodified `e2b` SDK against the API on a socket. What needs a guest is left to the end-to-end tests. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/std';
import {
  AuthenticationError,
  BuildError,
  Sandbox,
  SandboxError,
  SandboxNotFoundError,
  ServiceBusyError,
  Template,
  waitForPort,
} from 'e2b';
import { API_KEY, type Harness, listen, newHarness } from './testing/harness.ts';

interface Options {
  apiUrl: string;
  apiKey: string;
}

async function withServer(body: (options: Options, harness: Harness) => Promise<void>): Promise<void> {
  await using harness = newHarness();
  await using server = await listen(harness);
  await body({ apiUrl: server.url, apiKey: API_KEY }, harness);
}

test('a sandbox from create to kill', async () => {
  await withServer(async (options, harness) => {
    const templateId = harness.template();
    const lifecycle = { onTimeout: 'pause', autoResume: true } as const;
    const metadata = { 'user id': 'a/b=ü&c' };
    const settings = { metadata, envs: { A: '1' }, timeoutMs: 60_000, allowInternetAccess: false, lifecycle };
    const sandbox = await Sandbox.create('base', { ...options, ...settings });
    assert.deepEqual(harness.engine.sandboxes.lastSettings, {
      template: 'base',
      timeoutSeconds: 60,
      onTimeout: 'pause',
      pauseMemory: true,
      autoResume: true,
      secure: true,
      allowInternetAccess: false,
      metadata,
      envVars: { A: '1' },
    });
    const info = await sandbox.getInfo();
    assert.equal(info.templateId, templateId);
    assert.equal(info.name, 'base');
    assert.equal(info.state, 'running');
    assert.deepEqual(info.metadata, metadata);
    assert.equal(info.endAt.getTime(), harness.clock.now() + 60_000);
    await sandbox.setTimeout(5000);
    assert.equal((await sandbox.getInfo()).endAt.getTime(), harness.clock.now() + 5000);
    assert.equal(await sandbox.pause(), true);
    assert.equal(await sandbox.pause({ keepMemory: false }), false);
    assert.deepEqual(harness.engine.sandboxes.memory, [true, false]);
    assert.equal((await Sandbox.getInfo(sandbox.sandboxId, options)).state, 'paused');
    const again = await Sandbox.connect(sandbox.sandboxId, options);
    assert.equal(again.sandboxId, sandbox.sandboxId);
    assert.equal((await again.getInfo()).state, 'running');
    assert.equal(await again.kill(), true);
    assert.equal(await again.kill(), false);
    await assert.rejects(Sandbox.getInfo(sandbox.sandboxId, options), SandboxNotFoundError);
    await assert.rejects(Sandbox.connect(sandbox.sandboxId, options), SandboxNotFoundError);
    await assert.rejects(Sandbox.setTimeout(sandbox.sandboxId, 1000, options), SandboxNotFoundError);
  });
});

test('lists by page, state and metadata with any characters', async () => {
  await withServer(async (options, harness) => {
    harness.template();
    const metadata = { 'key with / & = + %': 'wért %41 "x"' };
    const marked = await Sandbox.create('base', { ...options, metadata });
    for (let n = 0; n < 4; n++) {
      harness.clock.advance(1000);
      await Sandbox.create('base', { ...options, metadata: { n: String(n) } });
    }
    await marked.pause();
    const find = async (query: object) => {
      const found = [];
      const pages = Sandbox.list({ ...options, query, limit: 2 });
      while (pages.hasNext) found.push(...(await pages.nextItems()));
      return found.map((sandbox) => sandbox.sandboxId);
    };
    assert.equal((await find({})).length, 5);
    assert.deepEqual(await find({ metadata }), [marked.sandboxId]);
    assert.deepEqual(await find({ state: ['paused'] }), [marked.sandboxId]);
    assert.equal((await find({ state: ['paused', 'running'] })).length, 5);
    assert.deepEqual(await find({ template: 'nothing' }), []);
  });
});

test('metrics', async () => {
  await withServer(async (options, harness) => {
    harness.template();
    const sandbox = await Sandbox.create('base', options);
    const sample = { cpuCount: 2, cpuUsedPct: 1.5, memUsed: 1, memTotal: 2, memCache: 0, diskUsed: 3, diskTotal: 4 };
    harness.engine.sandboxes.metrics = [{ timestamp: harness.clock.now(), ...sample }];
    const [metric] = await sandbox.getMetrics();
    assert.equal(metric?.cpuUsedPct, 1.5);
    assert.equal(metric?.timestamp.getTime(), harness.clock.now());
    assert.deepEqual(await sandbox.getMetrics({ start: new Date(0), end: new Date(1000) }), []);
  });
});

test('failures become the errors that the SDK documents', async () => {
  await withServer(async (options, harness) => {
    const wrong = { ...options, apiKey: `e2b_${'0'.repeat(40)}` };
    await assert.rejects(Sandbox.create('base', wrong), AuthenticationError);
    await assert.rejects(Sandbox.create('base', options), /404: Template base does not exist/);
    harness.template();
    harness.engine.fail('createSandbox', new AenvError('capacity_exhausted', 'no room'));
    await assert.rejects(Sandbox.create('base', options), ServiceBusyError);
    harness.engine.fail('createSandbox', undefined);
    const sandbox = await Sandbox.create('base', options);
    await assert.rejects(sandbox.updateNetwork({ allowInternetAccess: false }), /400: .*cannot be changed/);
    const network = { denyOut: ['10.0.0.0/8'] };
    await assert.rejects(Sandbox.create('base', { ...options, network }), SandboxError);
  });
});

test('a template from an image, with its log; steps are refused', async () => {
  await withServer(async (options, harness) => {
    harness.engine.templates.buildLog = Array.from({ length: 230 }, (_, n) => `line ${n}`);
    const lines: string[] = [];
    const onBuildLogs = (entry: { message: string }) => void lines.push(entry.message);
    const template = Template().fromImage('debian:12').setStartCmd('serve', waitForPort(80));
    const build = await Template.build(template, 'web:v1', { ...options, cpuCount: 1, memoryMB: 512, onBuildLogs });
    assert.equal(harness.engine.getTemplate('web').id, build.templateId);
    assert.deepEqual(
      lines.filter((line) => line.startsWith('line ')),
      harness.engine.templates.buildLog,
    );
    assert.equal(harness.engine.templates.lastBuild?.startCmd, 'serve');
    assert.match(harness.engine.templates.lastBuild?.readyCmd ?? '', /80/);
    assert.equal(await Template.exists('web', options), true);
    assert.equal(await Template.exists('nothing', options), false);
    const broken = Template.build(Template().fromImage('broken'), 'broken', options);
    await assert.rejects(broken, (error) => error instanceof BuildError && error.message === 'the image is broken');
    const steps = Template.build(Template().fromImage('debian').runCmd('id'), 'steps', options);
    await assert.rejects(steps, /400: A build with steps .* is not supported/);
  });
});

test('a private registry', async () => {
  await withServer(async (options, harness) => {
    const template = Template().fromImage('ghcr.io/a/b', { username: 'u', password: 'p' });
    await Template.build(template, 'private', options);
    assert.deepEqual(harness.engine.templates.lastBuild?.credentials, { username: 'u', password: 'p' });
  });
});
