/**
 * Sandboxes are started, paused, resumed, copied and deleted while the server and the launcher are killed at random moments.
 * Afterwards whatever was promised is there with its content, everything can be deleted, and the audit is clean.
 * AENV_CHAOS_SECONDS makes it longer, AENV_CHAOS_SEED repeats it.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Sandbox } from 'e2b';
import { processesWith } from './support/server.ts';
import { buildTemplate, createWorld, type World } from './support/world.ts';

const SECONDS = Number(process.env.AENV_CHAOS_SECONDS ?? 60);
const SEED = Number(process.env.AENV_CHAOS_SEED ?? Date.now() % 1_000_000);
const MOST = 5;

let world: World;
let connection: World['connection'];
/** What each sandbox that was promised to us has in its memory. */
const promised = new Map<string, string>();
/** Deleted, or asked to be. */
const given = new Set<string>();

before(async () => {
  world = await createWorld();
  connection = world.connection;
  await buildTemplate(world.server, { name: 'debian', image: world.image });
});

after(async () => {
  await world?.destroy();
});

/** mulberry32: numbers from 0 to 1 that the seed decides. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296;
  };
}

async function create(): Promise<void> {
  const sandbox = await Sandbox.create('debian', { ...connection, timeoutMs: 3_600_000 });
  const mark = `mark of ${sandbox.sandboxId}`;
  await sandbox.files.write('/dev/shm/mark', mark, { user: 'root' });
  promised.set(sandbox.sandboxId, mark);
}

async function call(method: string, path: string, body?: object): Promise<unknown> {
  return (await world.server.call(method, path, body)).body;
}

async function fork(id: string): Promise<void> {
  const results = (await call('POST', `/sandboxes/${id}/fork`, { count: 2, timeout: 3600 })) as {
    sandbox?: { sandboxID: string };
  }[];
  const mark = promised.get(id);
  if (!Array.isArray(results) || mark === undefined) return;
  for (const { sandbox } of results) if (sandbox) promised.set(sandbox.sandboxID, mark);
}

async function snapshotAndBack(id: string): Promise<void> {
  const snapshot = (await call('POST', `/sandboxes/${id}/snapshots`, {})) as { snapshotID?: string };
  if (!snapshot.snapshotID) return;
  await call('POST', `/sandboxes/${id}/rollback`, { snapshotID: snapshot.snapshotID });
}

async function remove(id: string): Promise<void> {
  given.add(id);
  await call('DELETE', `/sandboxes/${id}`);
}

const ON_ONE: ((id: string) => Promise<unknown>)[] = [
  (id) => call('POST', `/sandboxes/${id}/pause`),
  (id) => call('POST', `/v2/sandboxes/${id}/connect`, { timeout: 3600 }),
  snapshotAndBack,
  fork,
  remove,
];

/** A client that does one thing after another until it is told to stop; what fails with the server does not count. */
async function client(next: () => number, stopped: () => boolean): Promise<void> {
  while (!stopped()) {
    const ids = [...promised.keys()].filter((id) => !given.has(id));
    const id = ids[Math.floor(next() * ids.length)];
    const act = ids.length >= MOST ? remove : ON_ONE[Math.floor(next() * ON_ONE.length)];
    await (id === undefined || act === undefined || next() < 0.3 ? create() : act(id)).catch(() => {});
    await sleep(20);
  }
}

function killLauncher(): void {
  for (const line of processesWith('launcher/main.ts').filter((process) => process.includes(world.server.home))) {
    process.kill(Number(line.split(' ')[0]), 'SIGKILL');
  }
}

async function assertKept(id: string, mark: string): Promise<void> {
  const sandbox = await Sandbox.connect(id, connection);
  assert.equal(await sandbox.files.read('/dev/shm/mark', { user: 'root' }), mark);
}

test(`${SECONDS} s of killing (seed ${SEED}) lose nothing and leave nothing`, async () => {
  const next = random(SEED);
  const end = Date.now() + SECONDS * 1000;
  let kills = 0;
  let done = false;
  const clients = [client(next, () => done), client(next, () => done)];
  while (Date.now() < end) {
    await sleep(200 + next() * 3000);
    if (next() < 0.3) killLauncher();
    else {
      await world.server.kill();
      await world.server.start();
    }
    kills += 1;
  }
  done = true;
  await Promise.all(clients);
  assert.ok(kills > 3 && promised.size > 3, `only ${kills} kills and ${promised.size} sandboxes`);

  for (const [id, mark] of promised) if (!given.has(id)) await assertKept(id, mark);
  const left = (await call('GET', '/v2/sandboxes?state=running,paused')) as { sandboxID: string }[];
  for (const { sandboxID } of left) await call('DELETE', `/sandboxes/${sandboxID}`);
  for (const { snapshotID } of (await call('GET', '/snapshots?state=ready,failed')) as { snapshotID: string }[]) {
    await call('DELETE', `/templates/${snapshotID}`);
  }
  assert.deepEqual(await call('GET', '/audit'), { findings: [] });
  assert.deepEqual(
    processesWith(`${world.server.home}/vm/`).filter((line) => line.includes('qemu')),
    [],
    'VMs are left',
  );
  const running = (await call('GET', '/operations?state=running')) as unknown[];
  assert.deepEqual(running, [], 'operations are left');
});
