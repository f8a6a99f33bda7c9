/** Copies of sandboxes with real VMs: snapshots, forks and rollbacks hold exactly what was there, and nothing of another. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Sandbox } from 'e2b';
import { processesWith } from './support/server.ts';
import { until } from './support/until.ts';
import { buildTemplate, createWorld, type World } from './support/world.ts';

let world: World;
let connection: World['connection'];

before(async () => {
  world = await createWorld();
  connection = world.connection;
  await buildTemplate(world.server, { name: 'debian', image: world.image });
});

after(async () => {
  await world?.destroy();
});

const start = (template = 'debian') => Sandbox.create(template, { ...connection, timeoutMs: 600_000 });
const run = async (sandbox: Sandbox, command: string) => (await sandbox.commands.run(command)).stdout.trim();

/** Hash over every file that a test writes. */
const treeHash = (sandbox: Sandbox) => run(sandbox, 'cd /data && find . -type f | sort | xargs sha256sum | sha256sum');

/** A process that counts in its memory, and answers with the number that it has reached when it is asked. */
async function startCounting(sandbox: Sandbox): Promise<void> {
  const script = "i=0; trap 'echo $i > /dev/shm/count' USR1; while true; do i=$((i+1)); sleep 0.02; done";
  const { pid } = await sandbox.commands.run(script, { background: true, timeoutMs: 0 });
  await run(sandbox, `echo ${pid} > /dev/shm/pid`);
}

const count = async (sandbox: Sandbox) =>
  Number(
    await run(
      sandbox,
      'rm -f /dev/shm/count; kill -USR1 $(cat /dev/shm/pid); while ! [ -s /dev/shm/count ]; do sleep 0.02; done; cat /dev/shm/count',
    ),
  );

async function killAll(...sandboxes: Sandbox[]): Promise<void> {
  for (const sandbox of sandboxes) await sandbox.kill();
}

/** Nothing of a sandbox or snapshot that was deleted is on the disk or in the process table. */
async function assertClean(layers: number): Promise<void> {
  const { home } = world.server;
  await until(() => processesWith(`${home}/vm/`).length === 0);
  assert.deepEqual(await readdir(join(home, 'sandboxes')), []);
  assert.equal((await readdir(join(home, 'layers'))).length, layers);
  assert.ok(!(await readdir(join(home, 'templates'))).some((name) => name.startsWith('.')));
}

test('a snapshot holds memory and files of its moment; the source and its connections go on', async () => {
  const source = await start();
  const lines: string[] = [];
  const stream = await source.commands.run('n=0; while true; do echo $n; n=$((n+1)); sleep 0.05; done', {
    background: true,
    timeoutMs: 0,
    onStdout: (text) => void lines.push(text),
  });
  await startCounting(source);
  await run(source, 'mkdir /data && head -c 3000000 /dev/urandom > /data/a && echo one > /data/b');
  const [hash, counted] = [await treeHash(source), await count(source)];
  const snapshot = await source.createSnapshot({ name: 'moment' });
  const seen = lines.length;
  await run(source, 'echo two > /data/b');
  await until(() => lines.length > seen + 3);
  await stream.kill();

  const copy = await start(snapshot.snapshotId);
  assert.equal(await treeHash(copy), hash);
  assert.ok((await count(copy)) >= counted);
  assert.equal(await run(copy, 'cat /data/b'), 'one');
  assert.equal(await run(source, 'cat /data/b'), 'two');
  assert.ok((await count(source)) > counted);

  await world.server.kill();
  await world.server.start();
  assert.equal(await run(await Sandbox.connect(source.sandboxId, connection), 'cat /data/b'), 'two');
  await killAll(source, copy);
  const late = await start('moment');
  assert.equal(await treeHash(late), hash);
  await killAll(late);
  assert.equal(await Sandbox.deleteSnapshot('moment', connection), true);
  await assertClean(0);
});

test('eight forks have one past, and each an identity and a future of its own', async () => {
  const parent = await start();
  await startCounting(parent);
  await run(parent, 'mkdir /data && echo parent > /data/who && cat /proc/sys/kernel/random/boot_id > /data/boot');
  const counted = await count(parent);
  const children = (await parent.fork({ count: 8, timeoutMs: 600_000 })).map((child) =>
    child instanceof Sandbox ? child : assert.fail(child),
  );
  const identity = 'hostname; cat /proc/sys/kernel/random/boot_id; head -c 16 /dev/urandom | sha256sum';
  const seen = await Promise.all([parent, ...children].map((sandbox) => run(sandbox, identity)));
  for (const part of [0, 1, 2]) {
    const values = seen.map((text) => text.split('\n')[part]);
    assert.equal(new Set(values).size, 9, `shared by forks: ${values}`);
  }
  for (const [index, child] of children.entries()) {
    assert.ok((await count(child)) >= counted);
    assert.equal(await run(child, 'cat /data/who'), 'parent');
    await run(child, `echo ${index} > /data/who`);
  }
  assert.equal(await run(parent, 'cat /data/who'), 'parent');
  await parent.kill();
  const [first, second] = children as [Sandbox, Sandbox];
  await first.pause();
  await Sandbox.connect(first.sandboxId, connection);
  assert.equal(await run(first, 'cat /data/who'), '0');
  const [grandchild] = await second.fork();
  assert.equal(await run(grandchild as Sandbox, 'cat /data/who'), '1');
  await killAll(grandchild as Sandbox, ...children);
  await assertClean(0);
});

test('a rollback brings back files and processes under the same id, again and again', async () => {
  const sandbox = await start();
  await startCounting(sandbox);
  await run(sandbox, 'mkdir /data && echo good > /data/state');
  const hash = await treeHash(sandbox);
  const { snapshotId } = await sandbox.createSnapshot();
  const counted = await count(sandbox);
  for (let round = 0; round < 3; round += 1) {
    await run(sandbox, 'kill $(cat /dev/shm/pid); echo broken > /data/state; echo more > /data/more');
    const { status } = await world.server.call('POST', `/sandboxes/${sandbox.sandboxId}/rollback`, {
      snapshotID: snapshotId,
    });
    assert.equal(status, 200);
    assert.equal(await treeHash(sandbox), hash);
    assert.ok((await count(sandbox)) < counted + 1000);
  }
  await sandbox.pause();
  await Sandbox.connect(sandbox.sandboxId, connection);
  assert.equal(await treeHash(sandbox), hash);
  await killAll(sandbox);
  assert.equal(await Sandbox.deleteSnapshot(snapshotId, connection), true);
  await assertClean(0);
});

test('the server may die at any moment of a snapshot: it is complete or failed, and the source goes on', async () => {
  const sandbox = await start();
  await startCounting(sandbox);
  await run(sandbox, 'mkdir /data && head -c 2000000 /dev/urandom > /data/a');
  const hash = await treeHash(sandbox);
  let last = await count(sandbox);
  for (const delay of [0, 20, 40, 60, 90, 130, 200]) {
    const taking = world.server
      .call('POST', `/sandboxes/${sandbox.sandboxId}/snapshots`, {})
      .catch(() => ({ status: 0 }));
    await sleep(delay);
    await world.server.kill();
    await world.server.start();
    const { status } = await taking;
    const { body } = await world.server.call('GET', '/snapshots?state=creating,ready');
    const snapshots = body as { snapshotID: string; state: string }[];
    assert.ok(snapshots.every(({ state }) => state === 'ready'));
    if (status === 201) assert.equal(snapshots.length, 1);
    const again = await Sandbox.connect(sandbox.sandboxId, connection);
    assert.ok((await count(again)) > last, 'the source did not go on');
    last = await count(again);
    for (const { snapshotID } of snapshots) {
      const copy = await start(snapshotID);
      assert.equal(await treeHash(copy), hash);
      await copy.kill();
      await Sandbox.deleteSnapshot(snapshotID, connection);
    }
  }
  assert.equal(await treeHash(sandbox), hash);
  await sandbox.kill();
  await assertClean(0);
});
