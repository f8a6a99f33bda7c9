/**
 * The floor: bare QEMU, started and driven by hand through what a start or a resume of ours does, with the same command
 * line, files and guest. No server, launcher, database or proxy.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGuestClient } from '@aenv/guest';
import type { Slot } from '@aenv/linux';
import { Home } from '../packages/linux/src/home.ts';
import { patchMemory } from '../packages/linux/src/memory/patch.ts';

export interface Machine {
  /** QEMU's command line for a restore, as the launcher started it. */
  argv: string[];
  directory: string;
  diskFile: string;
  memoryFile: string;
}

/** Takes over the command line of a running sandbox's QEMU. */
export async function machineOf(pid: number): Promise<Machine> {
  const argv = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0').filter((word) => word !== '');
  const text = argv.join(' ');
  const find = (pattern: RegExp) => {
    const found = pattern.exec(text)?.[1];
    if (found === undefined) throw new Error(`no ${pattern} in ${text}`);
    return found;
  };
  return {
    argv,
    directory: find(/unix:([^,]+)\/qmp\.sock/),
    diskFile: find(/"filename":"([^"]+)"/),
    memoryFile: find(/mem-path=([^,]+)/),
  };
}

export interface FloorStart {
  /** Copied before the start; the copy is part of what is timed only for a start from a template. */
  disk: string;
  state: string;
  memoryDiff?: string;
}

export class FloorVm {
  readonly #child: ChildProcess;
  readonly #directory: string;

  private constructor(child: ChildProcess, directory: string) {
    this.#child = child;
    this.#directory = directory;
  }

  /** Restores in `slot` and lets it run. */
  static async start(
    machine: Machine,
    slot: Slot,
    home: string,
    { disk, state, memoryDiff }: FloorStart,
  ): Promise<FloorVm> {
    const directory = await mkdtemp(join(tmpdir(), 'floor-'));
    await copyFile(disk, join(directory, 'disk.qcow2'));
    const argv = machine.argv.map((word) =>
      word.replaceAll(machine.diskFile, join(directory, 'disk.qcow2')).replaceAll(machine.directory, directory),
    );
    const child = spawn('nsenter', [`--net=/run/netns/${slot.namespace}`, ...argv], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const qmp = await openQmp(join(directory, 'qmp.sock'));
    if (memoryDiff !== undefined) {
      await patchMemory(await Home.open(home), child.pid ?? 0, machine.memoryFile, memoryDiff);
    }
    await qmp('migrate-set-capabilities', { capabilities: [{ capability: 'x-ignore-shared', state: true }] });
    await qmp('migrate-incoming', { uri: `file:${state}` });
    while ((await qmp('query-status')).status === 'inmigrate') await sleep(1);
    await qmp('cont');
    return new FloorVm(child, directory);
  }

  async kill(): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
    await rm(this.#directory, { recursive: true, force: true });
  }
}

type Qmp = (execute: string, args?: object) => Promise<Record<string, unknown>>;

async function openQmp(path: string): Promise<Qmp> {
  const socket = await connectSoon(path);
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
  const next = async (): Promise<Record<string, unknown>> => JSON.parse((await lines.next()).value as string);
  const qmp: Qmp = async (execute, args) => {
    socket.write(`${JSON.stringify({ execute, arguments: args })}\n`);
    for (;;) {
      const answer = await next();
      if (answer.error) throw new Error(`${execute}: ${JSON.stringify(answer.error)}`);
      if ('return' in answer) return answer.return as Record<string, unknown>;
    }
  };
  await next();
  await qmp('qmp_capabilities');
  return qmp;
}

async function connectSoon(path: string): Promise<Socket> {
  for (;;) {
    const socket = connect(path);
    try {
      await once(socket, 'connect');
      return socket;
    } catch {
      await sleep(1);
    }
  }
}

/** Waits for the guest of `slot` and tells it who it is, as a sandbox of ours is told. */
export async function greet(slot: Slot, initKey: string, accessToken: string): Promise<void> {
  await greetAnd(slot, initKey, accessToken, async () => {});
}

/** The same, then the first output of a command. */
export async function greetAndRun(slot: Slot, initKey: string, accessToken: string): Promise<void> {
  await greetAnd(slot, initKey, accessToken, firstOutput);
}

async function greetAnd(
  slot: Slot,
  initKey: string,
  accessToken: string,
  work: (guest: ReturnType<typeof createGuestClient>) => Promise<void>,
): Promise<void> {
  const guest = createGuestClient({ host: slot.hostAddress, initKey, accessToken });
  try {
    await guest.waitHealthy(30_000);
    await guest.init({
      sandboxId: 'floor',
      hostname: 'floor',
      timestamp: new Date(),
      defaultUser: 'root',
      initKey,
      accessToken,
    });
    await work(guest);
  } finally {
    await guest.close();
  }
}

/** Resolves with the first output of `echo`. */
export async function firstOutput(guest: ReturnType<typeof createGuestClient>): Promise<void> {
  const seen = Promise.withResolvers<void>();
  const started = await guest.processes.start({ cmd: '/bin/echo', args: ['hello'], onOutput: () => seen.resolve() });
  await seen.promise;
  await started.exit;
}
