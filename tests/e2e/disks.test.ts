/** Disks of sandboxes with real VMs: copies and pauses without memory, and layers that are merged while the guest writes. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Sandbox } from 'e2b';
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
const bootId = (sandbox: Sandbox) => run(sandbox, 'cat /proc/sys/kernel/random/boot_id');
const treeHash = (sandbox: Sandbox) => run(sandbox, 'cd /data && find . -type f | sort | xargs sha256sum | sha256sum');
const layers = async () => (await readdir(join(world.server.home, 'layers'))).length;

test('what has no memory boots from its disk: a snapshot, a paused sandbox, and one that is rebooted', async () => {
  const source = await start();
  await source.commands.run('sleep 1000', { background: true, timeoutMs: 0 });
  await run(source, 'mkdir /data && head -c 3000000 /dev/urandom > /data/a && touch /dev/shm/gone');
  const [hash, boot] = [await treeHash(source), await bootId(source)];
  const { status, body } = await world.server.call('POST', `/sandboxes/${source.sandboxId}/snapshots`, {
    name: 'files',
    memory: false,
  });
  assert.equal(status, 201, JSON.stringify(body));
  assert.equal((body as { memory: boolean }).memory, false);
  assert.equal(await bootId(source), boot);
  await source.kill();

  const copy = await start('files');
  assert.equal(await treeHash(copy), hash);
  assert.equal(await run(copy, 'pgrep sleep; ls /dev/shm'), '');
  await run(copy, 'echo later > /data/b');
  const seen = new Set([boot, await bootId(copy)]);
  // With memory: it goes on as it was.
  await copy.pause();
  await Sandbox.connect(copy.sandboxId, connection);
  assert.ok(seen.has(await bootId(copy)));
  // Without.
  await copy.pause({ keepMemory: false });
  await world.server.kill();
  await world.server.start();
  await Sandbox.connect(copy.sandboxId, connection);
  assert.equal(await run(copy, 'cat /data/b'), 'later');
  seen.add(await bootId(copy));
  // With, but rebooted all the same.
  await run(copy, 'echo last > /data/b; sync');
  await copy.pause();
  await world.server.call('POST', `/v2/sandboxes/${copy.sandboxId}/connect`, { timeout: 600, memory: false });
  assert.equal(await run(copy, 'cat /data/b'), 'last');
  seen.add(await bootId(copy));
  assert.equal(seen.size, 4, 'each boot has an id of its own');
  const [fork] = (await copy.fork()) as [Sandbox];
  assert.equal(await run(fork, 'cat /data/b'), 'last');
  for (const sandbox of [copy, fork]) await sandbox.kill();
  await Sandbox.deleteSnapshot('files', connection);
  assert.equal(await layers(), 0);
});

test('two snapshots are compared without being started: files to the last one, and the memory', async () => {
  const sandbox = await start();
  await run(sandbox, 'mkdir /data && cd /data && echo one > changes && echo two > goes && echo three > stays');
  const { snapshotId: before } = await sandbox.createSnapshot();
  await run(sandbox, 'cd /data && echo more >> changes && rm goes && mkdir new && touch stays && ln -s stays new/link');
  await run(sandbox, 'chmod 600 /data/stays && head -c 30000000 /dev/urandom > /dev/shm/in-memory');
  const { snapshotId: after } = await sandbox.createSnapshot();
  const compare = async (from: string, to: string) => {
    const { status, body } = await world.server.call('GET', `/snapshots/diff?from=${from}&to=${to}`);
    assert.equal(status, 200, JSON.stringify(body));
    return body as { files: { path: string; kind: string }[]; memory?: { changedMB: number } };
  };
  const { files, memory } = await compare(before, after);
  const ours = files.filter(({ path }) => path.startsWith('/data'));
  assert.deepEqual(ours, [
    { path: '/data/changes', kind: 'changed' },
    { path: '/data/goes', kind: 'removed' },
    { path: '/data/new', kind: 'added' },
    { path: '/data/new/link', kind: 'added' },
    { path: '/data/stays', kind: 'changed' },
  ]);
  const changedMb = memory?.changedMB ?? 0;
  assert.ok(changedMb >= 28 && changedMb < 80, `${changedMb} MiB of memory`);
  assert.deepEqual(await compare(after, after), { files: [], memory: { changedMB: 0, totalMB: 256 } });
  const whole = await compare('debian', after);
  assert.ok(whole.files.some(({ path, kind }) => path === '/data/changes' && kind === 'added'));
  await sandbox.kill();
  for (const snapshot of [before, after]) await Sandbox.deleteSnapshot(snapshot, connection);
});

test('a disk of many snapshots consists of few layers, and every snapshot keeps its files', async () => {
  const sandbox = await start();
  await run(sandbox, 'mkdir /data && head -c 20000000 /dev/urandom > /data/old');
  const writer = await sandbox.commands.run('while true; do date +%N > /data/now; sync; done', {
    background: true,
    timeoutMs: 0,
  });
  const copies = new Map<string, string>();
  for (let n = 0; n < 20; n += 1) {
    const hash = await run(sandbox, `head -c 1000000 /dev/urandom > /data/${n}; cat /data/? /data/?? | sha256sum`);
    copies.set((await sandbox.createSnapshot()).snapshotId, hash);
  }
  await writer.kill();
  const hash = await treeHash(sandbox);
  const taken = await layers();
  for (const [snapshot, expected] of copies) {
    const copy = await start(snapshot);
    assert.equal(await run(copy, 'cat /data/? /data/?? | sha256sum'), expected);
    await copy.kill();
    await Sandbox.deleteSnapshot(snapshot, connection);
  }
  // One that is begun may take a while.
  await until(async () => (await layers()) < 10, 60_000);
  assert.ok(taken > 20, `${taken}`);
  assert.equal(await treeHash(sandbox), hash);
  await sandbox.pause({ keepMemory: false });
  await Sandbox.connect(sandbox.sandboxId, connection);
  assert.equal(await treeHash(sandbox), hash);
  await sandbox.kill();
  assert.equal(await layers(), 0);
});
