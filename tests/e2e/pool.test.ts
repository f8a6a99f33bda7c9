/** Sandboxes from the pool of waiting VMs, with real VMs: as good as any other, and each one its own. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Sandbox } from 'e2b';
import { processesWith } from './support/server.ts';
import { until } from './support/until.ts';
import { buildTemplate, createWorld, type World } from './support/world.ts';

const SIZE = 3;

let world: World;
let connection: World['connection'];

before(async () => {
  world = await createWorld({ AENV_POOL_SIZE: String(SIZE) });
  connection = world.connection;
  await buildTemplate(world.server, { name: 'debian', image: world.image });
});

after(async () => {
  await world?.destroy();
});

interface Pool {
  ready: number;
  hits: number;
  misses: number;
}

async function pool(): Promise<Pool> {
  const { body } = await world.server.call('GET', '/stats');
  return (body as { pool: Pool }).pool;
}

const run = async (sandbox: Sandbox, command: string) => (await sandbox.commands.run(command)).stdout.trim();

test('what a sandbox is asked to be, it is, though its VM was there before', async () => {
  const first = await Sandbox.create('debian', { ...connection, timeoutMs: 600_000 });
  await until(async () => (await pool()).ready === SIZE);
  // Long enough for a clock that stood still to be seen.
  await sleep(1500);
  const sandboxes: Sandbox[] = [];
  for (let index = 0; index < SIZE; index += 1) {
    sandboxes.push(
      await Sandbox.create('debian', {
        ...connection,
        timeoutMs: 600_000,
        envs: { NUMBER: String(index) },
        metadata: { number: String(index) },
        secure: true,
        allowInternetAccess: index !== 0,
      }),
    );
  }
  assert.equal((await pool()).hits, SIZE);
  const identity = 'hostname; cat /proc/sys/kernel/random/boot_id /etc/machine-id; head -c 16 /dev/urandom | sha256sum';
  const seen = await Promise.all([first, ...sandboxes].map((sandbox) => run(sandbox, identity)));
  for (const part of [0, 1, 2, 3]) {
    assert.equal(new Set(seen.map((text) => text.split('\n')[part])).size, SIZE + 1, `line ${part}: ${seen}`);
  }
  for (const [index, sandbox] of sandboxes.entries()) {
    assert.equal(await run(sandbox, 'hostname'), sandbox.sandboxId);
    assert.equal(await run(sandbox, 'echo $NUMBER $E2B_SANDBOX_ID'), `${index} ${sandbox.sandboxId}`);
    assert.deepEqual((await sandbox.getInfo()).metadata, { number: String(index) });
    const before = Date.now();
    const clock = Number(await run(sandbox, 'date +%s%3N'));
    assert.ok(clock > before - 1000 && clock < Date.now() + 1000, `the clock is off: ${before}, ${clock}`);
    const headers = { 'e2b-sandbox-id': sandbox.sandboxId, 'e2b-sandbox-port': '49983' };
    const stranger = await fetch(`${world.server.url}/files?path=/etc/hostname`, { headers });
    assert.equal(stranger.status, 401, 'the guest daemon answers without the token');
  }
  const [sandbox] = sandboxes as [Sandbox];
  await run(sandbox, 'echo kept > /dev/shm/note');
  await sandbox.pause();
  await Sandbox.connect(sandbox.sandboxId, connection);
  assert.equal(await run(sandbox, 'cat /dev/shm/note'), 'kept');
  for (const each of [first, ...sandboxes]) await each.kill();
});

test('a server that is killed leaves waiting VMs, and the next one ends them and makes its own', async () => {
  const sandbox = await Sandbox.create('debian', { ...connection, timeoutMs: 600_000 });
  await until(async () => (await pool()).ready === SIZE);
  const vms = () => processesWith(`${world.server.home}/vm/`).filter((line) => line.includes('qemu'));
  assert.equal(vms().length, SIZE + 1);
  await world.server.kill();
  await world.server.start();
  await until(() => vms().length === 1);
  await sandbox.kill();
  const again = await Sandbox.create('debian', { ...connection, timeoutMs: 600_000 });
  await until(async () => (await pool()).ready === SIZE);
  await again.kill();
  await world.server.stop();
  assert.deepEqual(vms(), []);
  await world.server.start();
});
