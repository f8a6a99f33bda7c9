/** A launcher with an AENV_HOME of its own for a test, and what it takes to leave nothing behind. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Logger, pollUntil, silentLogger } from '@aenv/std';
import { type ConnectedLauncher, connectLauncher } from '../client.ts';
import { lookUpProgram } from '../commands.ts';
import { ensureLauncher } from '../ensure.ts';
import { homeKey, launcherSocket, vmDirectory } from '../launcher/paths.ts';
import { startLauncher } from '../launcher/server.ts';
import type { Launcher, SpawnRequest } from '../launcher-api.ts';
import { sendSignal } from '../processes.ts';

/** Why a test that needs all of a host cannot run here; undefined when it can. */
export function missing(...programs: string[]): string | undefined {
  if (process.geteuid?.() !== 0) return 'needs root';
  const absent = ['ip', 'nft', 'nsenter', 'setpriv', ...programs].find((name) => !lookUpProgram(name));
  if (absent) return `needs the program ${absent}`;
  const { status } = spawnSync('unshare', ['--net', '--', 'true']);
  return status === 0 ? undefined : 'needs network namespaces';
}

export const QEMU = 'qemu-system-x86_64';
export const MEMORY_MB = 16;

export class World implements AsyncDisposable {
  readonly home: string;
  readonly #secret: string;
  readonly #cleanups: (() => Promise<unknown>)[] = [];

  private constructor(home: string, secret: string) {
    this.home = home;
    this.#secret = secret;
  }

  static async make(): Promise<World> {
    const home = await mkdtemp(join(tmpdir(), 'aenv-linux-'));
    await chmod(home, 0o711);
    return new World(home, await mkdtemp(join(tmpdir(), 'aenv-socket-')));
  }

  get socketPath(): string {
    return join(this.#secret, 'launcher.sock');
  }

  /** A launcher in this process, and a client of it. */
  async start(logger: Logger = silentLogger): Promise<ConnectedLauncher> {
    const running = await startLauncher({ home: this.home, socketPath: this.socketPath, logger });
    this.#cleanups.push(() => running.close());
    return this.connect();
  }

  async connect(): Promise<ConnectedLauncher> {
    const client = await connectLauncher(this.socketPath);
    this.#cleanups.push(() => client.close());
    return client;
  }

  /** A launcher in a process of its own. */
  async ensure(): Promise<Launcher> {
    const launcher = await ensureLauncher({ home: this.home, logger: silentLogger });
    this.#cleanups.push(() => launcher.close());
    return launcher;
  }

  /** Pid of the launcher that `ensure` has started. */
  launcherPid(): number | undefined {
    const wanted = `launcher/main.ts\0${this.home}\0`;
    return pids().find((pid) => commandLine(pid).includes(wanted) && !commandLine(pid).includes('flock'));
  }

  /** A request for a VM without a guest that waits with stopped processors. Its memory is a private mapping. */
  async vm(id: string, slot: number): Promise<SpawnRequest & { memoryFile: string }> {
    const directory = join(this.home, 'vm', id);
    const memoryFile = join(this.home, `${id}.memory`);
    await writeFile(memoryFile, 'base');
    await truncate(memoryFile, MEMORY_MB << 20);
    await chmod(memoryFile, 0o444);
    return {
      id,
      slot,
      directory,
      own: [],
      memoryFile,
      argv: [
        QEMU, '-nodefaults', '-no-user-config', '-display', 'none', '-S', '-m', `${MEMORY_MB}`,
        '-M', 'microvm,memory-backend=ram0', '-accel', 'tcg,tb-size=16',
        '-sandbox', 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny',
        '-object', `memory-backend-file,id=ram0,size=${MEMORY_MB}M,mem-path=${memoryFile},share=off,readonly=on,rom=off`,
        '-netdev', 'tap,id=net0,ifname=tap0,script=no,downscript=no', '-device', 'virtio-net-device,netdev=net0',
        '-qmp', `unix:${directory}/qmp.sock,server=on,wait=off`,
      ], // biome-ignore format: option and value belong together
      limits: { memoryBytes: 512 << 20, cpus: 1, pids: 64 },
      logFile: join(directory, 'console.log'),
    };
  }

  async directory(name: string): Promise<string> {
    const path = join(this.home, name);
    await mkdir(path, { recursive: true, mode: 0o711 });
    return path;
  }

  /** Ends what the test has left: VMs, slots, the launcher, the files. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const cleanup of this.#cleanups.reverse()) await cleanup();
    const pid = this.launcherPid();
    if (pid) await endProcess(pid);
    await using last = await startLauncher({ home: this.home, socketPath: this.socketPath, logger: silentLogger }).then(
      (running) => ({ [Symbol.asyncDispose]: () => running.close() }),
    );
    void last;
    const client = await connectLauncher(this.socketPath);
    for (const { id } of await client.listVms()) await client.killVm(id, 0);
    for (const { index } of await client.listSlots()) await client.destroySlot(index);
    await client.close();
    for (const path of [this.home, this.#secret, vmDirectory(this.home)])
      await rm(path, { recursive: true, force: true });
    for (const path of [launcherSocket(this.home), lockPath(this.home)]) await rm(path, { force: true });
  }
}

function lockPath(home: string): string {
  return launcherSocket(home).replace(`${homeKey(home)}.sock`, `${homeKey(home)}.lock`);
}

/** Kills a process and waits until it is gone. */
export async function endProcess(pid: number): Promise<void> {
  sendSignal(pid, 'SIGKILL');
  await pollUntil(`the end of ${pid}`, () => (commandLine(pid) === '' ? true : undefined), {
    intervalMs: 5,
    timeoutMs: 5000,
  });
}

export function pids(): number[] {
  return readdirSync('/proc').map(Number).filter(Number.isInteger);
}

/** Arguments, each ended by a NUL; empty for a process that is gone, or a zombie. */
export function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    return '';
  }
}
