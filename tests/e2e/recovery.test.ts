/** kill -9 in the middle: whatever dies, and whenever, nothing is lost that was promised and nothing is left over. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Sandbox } from 'e2b';
import { processesWith } from './support/server.ts';
import { until } from './support/until.ts';
import { buildTemplate, createWorld, type World } from './support/world.ts';

let world: World;
let connection: World['connection'];
let templateDigest: string;

before(async () => {
  world = await createWorld();
  connection = world.connection;
  await buildTemplate(world.server, { name: 'debian', image: world.image });
  templateDigest = await digestOfTemplates();
});

after(async () => {
  await world?.destroy();
});

/** Of every file that sandboxes share. */
async function digestOfTemplates(): Promise<string> {
  const root = join(world.server.home, 'templates');
  const hash = createHash('sha256');
  for (const entry of (await readdir(root, { recursive: true, withFileTypes: true })).filter((file) => file.isFile())) {
    await pipeline(createReadStream(join(entry.parentPath, entry.name)), hash, { end: false });
  }
  return hash.digest('hex');
}

const vmProcesses = () => processesWith(`${world.server.home}/vm/`).filter((line) => line.includes('qemu'));

async function restart(): Promise<void> {
  await world.server.kill();
  await world.server.start();
}

async function startCounting(sandbox: Sandbox): Promise<void> {
  await sandbox.commands.run('i=0; while true; do i=$((i+1)); echo $i > /dev/shm/count; sleep 0.05; done', {
    background: true,
    timeoutMs: 0,
  });
  await until(async () => (await countOf(sandbox)) > 2);
}

async function countOf(sandbox: Sandbox): Promise<number> {
  const text = await sandbox.files.read('/dev/shm/count').catch(() => '');
  return Number(text);
}

test('a running sandbox goes on when the server is killed', async () => {
  const sandbox = await Sandbox.create('debian', { ...connection, timeoutMs: 600_000 });
  try {
    await startCounting(sandbox);
    const before = await countOf(sandbox);
    await restart();
    const again = await Sandbox.connect(sandbox.sandboxId, connection);
    await until(async () => (await countOf(again)) > before);
    assert.equal((await again.getInfo()).state, 'running');
  } finally {
    await Sandbox.kill(sandbox.sandboxId, connection);
  }
});

test('a sandbox survives the death of the server at any moment of its pause', async () => {
  const sandbox = await Sandbox.create('debian', { ...connection, timeoutMs: 600_000 });
  try {
    await startCounting(sandbox);
    let last = await countOf(sandbox);
    for (const delay of [0, 15, 40, 80, 150, 300]) {
      const pausing = world.server.call('POST', `/sandboxes/${sandbox.sandboxId}/pause`).catch(() => undefined);
      await sleep(delay);
      await restart();
      await pausing;
      const again = await Sandbox.connect(sandbox.sandboxId, connection);
      await until(async () => (await countOf(again)) > last);
      last = await countOf(again);
    }
  } finally {
    await Sandbox.kill(sandbox.sandboxId, connection);
  }
});

test('a sandbox survives the death of the server at any moment of its resume', async () => {
  const sandbox = await Sandbox.create('debian', { ...connection, timeoutMs: 600_000 });
  try {
    await startCounting(sandbox);
    let last = await countOf(sandbox);
    for (const delay of [0, 60, 200, 400]) {
      await world.server.call('POST', `/sandboxes/${sandbox.sandboxId}/pause`);
      const resuming = world.server
        .call('POST', `/sandboxes/${sandbox.sandboxId}/connect`, { timeout: 600 })
        .catch(() => undefined);
      await sleep(delay);
      await restart();
      await resuming;
      const again = await Sandbox.connect(sandbox.sandboxId, connection);
      await until(async () => (await countOf(again)) > last);
      last = await countOf(again);
    }
  } finally {
    await Sandbox.kill(sandbox.sandboxId, connection);
  }
});

test('a start that dies with the server leaves no VM and no files', async () => {
  for (const delay of [0, 50, 150, 400]) {
    const creating = world.server.call('POST', '/v2/sandboxes', { templateID: 'debian' }).catch(() => undefined);
    await sleep(delay);
    await restart();
    await creating;
  }
  const { body } = await world.server.call('GET', '/v2/sandboxes');
  const known = (body as { sandboxID: string }[]).map(({ sandboxID }) => sandboxID);
  // What the server had already answered for lives on; everything else is gone.
  await until(() => vmProcesses().length === known.length);
  assert.deepEqual((await readdir(join(world.server.home, 'sandboxes'))).sort(), known.sort());
  for (const id of known) await world.server.call('DELETE', `/sandboxes/${id}`);
  assert.deepEqual(vmProcesses(), []);
});

test('a build that dies with the server is an error, and nothing of it is left', async () => {
  const { body } = await world.server.call('POST', '/v3/templates', { name: 'doomed', cpuCount: 1, memoryMB: 256 });
  const { templateID, buildID } = body as { templateID: string; buildID: string };
  await world.server.call('POST', `/v2/templates/${templateID}/builds/${buildID}`, { fromImage: world.image });
  await until(() => vmProcesses().length > 0);
  await restart();
  const status = await world.server.call('GET', `/templates/${templateID}/builds/${buildID}/status`);
  const { status: state, reason } = status.body as { status: string; reason: { message: string } };
  assert.equal(state, 'error');
  assert.match(reason.message, /restarted/);
  assert.deepEqual(vmProcesses(), []);
  assert.equal((await readdir(join(world.server.home, 'templates'))).length, 1);
  assert.equal((await world.server.call('DELETE', `/templates/${templateID}`)).status, 204);
});

test('a VM that dies takes its sandbox with it, and the answer says so', async () => {
  const sandbox = await Sandbox.create('debian', connection);
  const [line = ''] = vmProcesses().filter((process) => process.includes(sandbox.sandboxId));
  process.kill(Number(line.split(' ')[0]), 'SIGKILL');
  await until(async () => (await world.server.call('GET', `/sandboxes/${sandbox.sandboxId}`)).status === 404);
  const { body } = await world.server.call('GET', `/sandboxes/${sandbox.sandboxId}`);
  assert.match((body as { message: string }).message, /vmm_crash/);
  assert.deepEqual(await readdir(join(world.server.home, 'sandboxes')), []);
});

test('a sandbox goes on when the launcher is killed, and can be paused and deleted afterwards', async () => {
  const sandbox = await Sandbox.create('debian', { ...connection, timeoutMs: 600_000 });
  try {
    await startCounting(sandbox);
    const before = await countOf(sandbox);
    for (const line of processesWith('launcher/main.ts').filter((text) => text.includes(world.server.home))) {
      process.kill(Number(line.split(' ')[0]), 'SIGKILL');
    }
    await until(async () => (await countOf(sandbox)) > before);
    await until(async () => {
      const { status } = await world.server.call('POST', `/sandboxes/${sandbox.sandboxId}/pause`);
      return status === 204 || status === 409;
    });
    const again = await Sandbox.connect(sandbox.sandboxId, connection);
    await until(async () => (await countOf(again)) > before);
  } finally {
    assert.equal(await Sandbox.kill(sandbox.sandboxId, connection), true);
  }
  assert.deepEqual(vmProcesses(), []);
});

test('no sandbox has changed the files of its template', async () => {
  assert.equal(await digestOfTemplates(), templateDigest);
});

test('with all sandboxes gone no namespace of a used slot is left', async () => {
  await world.server.stop();
  const names = execFileSync('ip', ['netns', 'list'], { encoding: 'utf8' });
  const records = await readdir('/run/aenv/slots').catch(() => [] as string[]);
  for (const record of records) {
    const text = await readFile(join('/run/aenv/slots', record), 'utf8');
    assert.ok(!text.includes(world.server.home), `a slot is left: ${record} ${names}`);
  }
  await world.server.start();
});
