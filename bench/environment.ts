/** What the measurements share: a server with a template, and for the floor a slot and a machine of its own. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createGuestClient, type GuestClient } from '@aenv/guest';
import { ensureLauncher, type Slot } from '@aenv/linux';
import { homeLayout, TemplateStore } from '@aenv/snapshot';
import { silentLogger } from '@aenv/std';
import { processesWith } from '../tests/e2e/support/server.ts';
import { buildTemplate, type World } from '../tests/e2e/support/world.ts';
import { type Machine, machineOf } from './floor.ts';
import { timed } from './statistics.ts';

export interface BenchSandbox {
  id: string;
  token: string;
}

export interface Bench extends AsyncDisposable {
  world: World;
  /** Files of the template that sandboxes of the bench start from. */
  template: ReturnType<TemplateStore['files']>;
  /** Key that the guests of the template obey. */
  initKey: string;
  slot: Slot;
  machine: Machine;
  create(): Promise<BenchSandbox>;
  kill(sandbox: BenchSandbox): Promise<void>;
  /** By way of the server's proxy. */
  guestOf(sandbox: BenchSandbox): GuestClient;
}

export async function openBench(world: World): Promise<Bench> {
  const { server } = world;
  await buildTemplate(server, { name: 'bench', image: world.image, memoryMB: 256 });
  const create = async () => {
    const { body, status } = await server.call('POST', '/v2/sandboxes', { templateID: 'bench', timeout: 3600 });
    if (status !== 201) throw new Error(`create: ${JSON.stringify(body)}`);
    const { sandboxID, envdAccessToken } = body as { sandboxID: string; envdAccessToken: string };
    return { id: sandboxID, token: envdAccessToken };
  };
  const kill = async ({ id }: BenchSandbox) => void (await server.call('DELETE', `/sandboxes/${id}`));
  const launcher = await ensureLauncher({ home: join(server.home, 'floor'), logger: silentLogger });
  const first = await create();
  const machine = await machineOf(pidOf(server.home, first.id));
  await kill(first);
  const build = readBuild(server.home);
  const slot = await launcher.createSlot({ internet: true });
  return {
    world,
    template: new TemplateStore(homeLayout(server.home), launcher).files(build.id),
    initKey: build.initKey,
    slot,
    machine,
    create,
    kill,
    guestOf: (sandbox) =>
      createGuestClient({
        origin: server.url,
        accessToken: sandbox.token,
        headers: { 'E2b-Sandbox-Id': sandbox.id, 'E2b-Sandbox-Port': '49983' },
      }),
    [Symbol.asyncDispose]: async () => {
      await launcher.destroySlot(slot.index);
      await launcher.close();
    },
  };
}

function readBuild(home: string): { id: string; initKey: string } {
  const database = new DatabaseSync(homeLayout(home).database, { readOnly: true });
  try {
    const row = database.prepare('SELECT id, guest_json FROM builds').get();
    return { id: row?.id as string, initKey: JSON.parse(row?.guest_json as string).initKey };
  } finally {
    database.close();
  }
}

/** Has the guest change so much of its memory, MB. */
export async function dirty(bench: Bench, sandbox: BenchSandbox, mb: number): Promise<void> {
  await using guest = bench.guestOf(sandbox);
  // Random bytes would take an emulated processor seconds.
  const args = ['-c', `tr '\\0' x < /dev/zero | head -c ${mb}M > /dev/shm/dirty`];
  const { exit } = await guest.processes.start({ cmd: '/bin/sh', args });
  if ((await exit).exitCode !== 0) throw new Error('the guest could not change its memory');
}

/** KiB from a line of /proc such as `Pss:  123 kB`. */
export async function procField(pid: number, file: string, name: string): Promise<number> {
  const text = await readFile(`/proc/${pid}/${file}`, 'utf8');
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1]);
}

function pidOf(home: string, id: string): number {
  const line = processesWith(`${home}/vm/`).find((process) => process.includes(id)) ?? '';
  return Number(line.split(' ')[0]);
}

/** KiB that only the VM of this sandbox has. */
export async function privateMemory(home: string, id: string): Promise<number> {
  const pid = pidOf(home, id);
  return (
    (await procField(pid, 'smaps_rollup', 'Private_Dirty')) + (await procField(pid, 'smaps_rollup', 'Private_Clean'))
  );
}

/** Milliseconds that the fork took, and the sandboxes that it made. */
export async function forkOf(
  bench: Bench,
  parent: BenchSandbox,
  count: number,
): Promise<{ ms: number; children: BenchSandbox[] }> {
  const { ms, value } = await timed(() =>
    bench.world.server.call('POST', `/sandboxes/${parent.id}/fork`, { count, timeout: 3600 }),
  );
  const results = value.body as { sandbox?: { sandboxID: string; envdAccessToken: string } }[];
  const children = results.flatMap(({ sandbox }) =>
    sandbox ? [{ id: sandbox.sandboxID, token: sandbox.envdAccessToken }] : [],
  );
  if (children.length !== count) throw new Error(`fork: ${JSON.stringify(value)}`);
  return { ms, children };
}
