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
  const [line = ''] = processesWith(`${server.home}/vm/`).filter((process) => process.includes(first.id));
  const machine = await machineOf(Number(line.split(' ')[0]));
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

/** KiB from a line of /proc such as `Pss:  123 kB`. */
export async function procField(pid: number, file: string, name: string): Promise<number> {
  const text = await readFile(`/proc/${pid}/${file}`, 'utf8');
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1]);
}
