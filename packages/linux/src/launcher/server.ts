/**
 * The launcher: a small process with the privileges that the server does without. It outlives the server together with
 * the VMs, and ends by itself when it has neither clients nor VMs.
 */
import { chmod, lstat, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { AenvError, type Logger } from '@aenv/std';
import { JOB_UID } from '../addresses.ts';
import { Home } from '../home.ts';
import { startTicksOf } from '../processes.ts';
import { Cgroups } from './cgroups.ts';
import { Connection } from './connection.ts';
import { makeDevicesUsable } from './devices.ts';
import { JobRunner } from './jobs.ts';
import { perform, type Services } from './methods.ts';
import { vmDirectory } from './paths.ts';
import { makeRunDirectories } from './run-directories.ts';
import { SlotStore } from './slots.ts';
import { VmRecords } from './vm-records.ts';
import { VmStore } from './vms.ts';

/** Milliseconds without clients and VMs until the launcher ends. */
const IDLE_MS = 3000;

export interface LauncherOptions {
  /** AENV_HOME; every path in a request must lie below it. */
  home: string;
  socketPath: string;
  logger: Logger;
}

export interface RunningLauncher {
  /** Resolves when the launcher has ended because nobody needs it, with its slots removed. */
  readonly idle: Promise<void>;
  /** Stops listening and lets go of the VMs, which run on; for the next launcher to take over. */
  close(): Promise<void>;
}

/** Takes over what an earlier launcher of this home has left, and serves. Needs root; one at a time for one home. */
export async function startLauncher({ home, socketPath, logger }: LauncherOptions): Promise<RunningLauncher> {
  if (process.geteuid?.() !== 0) {
    throw new AenvError('host_unsupported', 'the launcher needs root, to make namespaces and to change users', {
      remedy: 'Start the server as root; VMs and image jobs run as users of their own without any privileges.',
    });
  }
  await prepareDirectories(socketPath);
  // A VM that ends before there is a launcher to tell of it ends before there is a client to hear it.
  let launcher: LauncherProcess | undefined;
  const services = await openServices(home, logger, (exit) => launcher?.broadcast(exit));
  launcher = new LauncherProcess(services, logger);
  await launcher.listen(socketPath);
  return launcher;
}

async function openServices(path: string, logger: Logger, onExit: VmStoreListener): Promise<Services> {
  const home = await Home.open(path);
  await using images = await home.makeDirectory(`${home.root}/images`);
  await images.chown(JOB_UID, JOB_UID);
  await makeDevicesUsable(logger);
  const cgroups = await Cgroups.open();
  if (cgroups.problem) logger.warn({ reason: cgroups.problem }, 'VMs run without cgroup limits');
  const vms = new VmStore({ home, cgroups, records: new VmRecords(vmDirectory(home.root)), logger, onExit });
  await vms.recover();
  const owner = { pid: process.pid, startTicks: startTicksOf(process.pid) ?? 0 };
  const slots = new SlotStore({ home: home.root, owner, logger });
  await slots.recover();
  return { home, cgroups, vms, slots, jobs: new JobRunner(home) };
}

type VmStoreListener = ConstructorParameters<typeof VmStore>[0]['onExit'];

async function prepareDirectories(socketPath: string): Promise<void> {
  await makeRunDirectories();
  const directory = await lstat(dirname(socketPath));
  // Whoever may connect may use the launcher, so nobody but root may pass the directory of the socket.
  if (!directory.isDirectory() || directory.uid !== 0 || (directory.mode & 0o077) !== 0) {
    throw new AenvError('host_unsupported', `${dirname(socketPath)} must belong to root and be closed to others`, {
      remedy: `chown root:root ${dirname(socketPath)}; chmod 0700 ${dirname(socketPath)}`,
    });
  }
}

class LauncherProcess implements RunningLauncher {
  readonly #services: Services;
  readonly #logger: Logger;
  readonly #clients = new Map<Socket, Connection>();
  readonly #server: Server;
  readonly #idle = Promise.withResolvers<void>();
  #idleTimer: NodeJS.Timeout | undefined;

  constructor(services: Services, logger: Logger) {
    this.#services = services;
    this.#logger = logger;
    this.#server = createServer((socket) => this.#accept(socket));
  }

  get idle(): Promise<void> {
    return this.#idle.promise;
  }

  broadcast(exit: Parameters<VmStoreListener>[0]): void {
    for (const client of this.#clients.values()) client.send({ event: 'vmExit', exit });
    this.#considerIdle();
  }

  async listen(path: string): Promise<void> {
    await rm(path, { force: true });
    const mask = process.umask(0o177);
    try {
      await new Promise<void>((resolve, reject) => {
        this.#server.once('error', reject);
        this.#server.listen(path, resolve);
      });
    } finally {
      process.umask(mask);
    }
    await chmod(path, 0o600);
    this.#considerIdle();
  }

  async close(): Promise<void> {
    clearTimeout(this.#idleTimer);
    for (const socket of this.#clients.keys()) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
    await this.#services.vms.close();
  }

  #accept(socket: Socket): void {
    clearTimeout(this.#idleTimer);
    const connection = new Connection(socket, (...call) => perform(this.#services, ...call), this.#logger);
    this.#clients.set(socket, connection);
    socket.on('close', () => {
      this.#clients.delete(socket);
      this.#considerIdle();
    });
  }

  /** Counts down while there is neither client nor VM; jobs of a client that went away may still be ending. */
  #considerIdle(): void {
    clearTimeout(this.#idleTimer);
    if (this.#clients.size > 0 || this.#services.vms.size > 0) return;
    this.#idleTimer = setTimeout(() => {
      if (this.#services.jobs.running > 0) this.#considerIdle();
      else void this.#end();
    }, IDLE_MS);
  }

  /** The socket goes first, so that a new server starts a launcher of its own. */
  async #end(): Promise<void> {
    await this.close();
    const { slots } = this.#services;
    for (const { index } of slots.list()) {
      await slots.destroy(index).catch((error) => this.#logger.error({ err: error, slot: index }, 'slot not removed'));
    }
    this.#idle.resolve();
  }
}
