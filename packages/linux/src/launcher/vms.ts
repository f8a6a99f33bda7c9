/** The VMM processes of one AENV_HOME: those this launcher has started, and those that an earlier one left running. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { FileHandle } from 'node:fs/promises';
import { AenvError, type Deferred, deferred, KeyedMutex, type Logger, withDeadline } from '@aenv/std';
import { FIRST_SLOT_UID, SLOT_COUNT } from '../addresses.ts';
import { COMMAND_ENVIRONMENT, findProgram, spawnError } from '../commands.ts';
import type { Home } from '../home.ts';
import type { Slot, SpawnRequest, VmExit, VmProcess } from '../launcher-api.ts';
import { isAlive, sendSignal, startTicksOf } from '../processes.ts';
import type { Cgroups } from './cgroups.ts';
import { confinedArgv } from './confine.ts';
import { readTail, trimLog } from './log-file.ts';
import { namespacePath } from './slot-network.ts';
import type { VmRecordFile, VmRecords } from './vm-records.ts';

const LOG_CHECK_MS = 5000;
const ADOPTED_CHECK_MS = 100;
/** How long the kernel may take to end a killed process, milliseconds. */
const KILL_DEADLINE_MS = 20_000;

interface Entry {
  process: VmProcess;
  log: FileHandle | undefined;
  /** Resolves when the process is gone and its cgroup and record with it. */
  gone: Deferred<void>;
}

export interface VmStoreOptions {
  home: Home;
  cgroups: Cgroups;
  records: VmRecords;
  logger: Logger;
  onExit: (exit: VmExit) => void;
}

export class VmStore {
  readonly #options: VmStoreOptions;
  readonly #vms = new Map<string, Entry>();
  /** Ids of those that are not children of this process. */
  readonly #adopted = new Set<string>();
  readonly #locks = new KeyedMutex();
  readonly #timers: NodeJS.Timeout[] = [];

  constructor(options: VmStoreOptions) {
    this.#options = options;
    this.#timers.push(setInterval(() => void this.#trimLogs(), LOG_CHECK_MS).unref());
    this.#timers.push(setInterval(() => this.#checkAdopted(), ADOPTED_CHECK_MS).unref());
  }

  /** Takes over what still runs and forgets what does not. Returns the slots in use. */
  async recover(): Promise<void> {
    const { records, logger } = this.#options;
    for (const record of await records.read()) {
      if (record.process && isAlive(record.process)) await this.#adopt(record, record.process);
      else
        await this.#forget(record).catch((error) => logger.error({ err: error, vm: record.id }, 'leftovers of a VM'));
    }
  }

  get size(): number {
    return this.#vms.size;
  }

  list(): VmProcess[] {
    return [...this.#vms.values()].map(({ process }) => process);
  }

  get(id: string): VmProcess {
    const entry = this.#vms.get(id);
    if (!entry) throw new AenvError('not_found', `no VM ${id} is running`);
    return entry.process;
  }

  /** Those of the VMs that run. */
  cgroupNames(): Set<string> {
    return new Set(this.list().map(cgroupName));
  }

  inSlot(slot: number): VmProcess | undefined {
    return this.list().find((process) => process.slot === slot);
  }

  /** Starts a VMM. The caller holds the slot's lock. */
  spawn(request: SpawnRequest, slot: Slot): Promise<VmProcess> {
    return this.#locks.run(request.id, async () => {
      if (this.#vms.has(request.id)) throw new AenvError('conflict', `a VM ${request.id} is running already`);
      const other = this.inSlot(slot.index);
      if (other) throw new AenvError('conflict', `slot ${slot.index} is taken by the VM ${other.id}`);
      await this.#giveDirectory(request.directory, slot.uid);
      const log = await this.#options.home.openLog(request.logFile);
      try {
        return await this.#start(request, slot, log);
      } catch (error) {
        await log.close();
        throw error;
      }
    });
  }

  async kill(id: string, graceMs: number): Promise<void> {
    // A start that is under way comes to its end first.
    const entry = await this.#locks.run(id, async () => this.#vms.get(id));
    if (!entry) return;
    const { pid } = entry.process;
    if (graceMs > 0) {
      this.#signal(entry, 'SIGTERM');
      await withDeadline(entry.gone.promise, graceMs, 'SIGTERM').catch(() => {});
    }
    if (this.#vms.get(id) === entry) this.#signal(entry, 'SIGKILL');
    await withDeadline(entry.gone.promise, KILL_DEADLINE_MS, `the end of the VMM of ${id} (process ${pid})`);
  }

  /** Makes the file the property of the user that the VM runs as. */
  giveFile(id: string, path: string): Promise<void> {
    return this.#giveFile(path, FIRST_SLOT_UID + this.get(id).slot);
  }

  /** Stops watching; the processes go on. */
  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    for (const { log } of this.#vms.values()) await log?.close();
  }

  async #start(request: SpawnRequest, slot: Slot, log: FileHandle): Promise<VmProcess> {
    const { cgroups, records } = this.#options;
    const record: VmRecordFile = { id: request.id, slot: slot.index, logFile: request.logFile };
    const argv = [findProgram(request.argv[0] ?? ''), ...request.argv.slice(1)];
    for (const path of request.own) await this.#giveFile(path, slot.uid);
    await records.write(record);
    try {
      const cgroupFiles = await cgroups.create(cgroupName(record), request.limits);
      const child = await startProcess(
        confinedArgv(argv, {
          uid: slot.uid,
          network: { path: namespacePath(slot.index) },
          cgroupFiles,
          pids: request.limits.pids,
          kvm: true,
        }),
        request.directory,
        log.fd,
      );
      return await this.#watch(child, record, log);
    } catch (error) {
      await this.#forget(record);
      throw error;
    }
  }

  async #watch(child: ChildProcess, record: VmRecordFile, log: FileHandle): Promise<VmProcess> {
    const pid = child.pid ?? 0;
    const exited = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
      child.once('exit', (code, signal) => resolve({ code, signal }));
    });
    const startTicks = startTicksOf(pid);
    if (startTicks === undefined) {
      throw new AenvError('vmm_failed', `the VMM ended at once: ${(await readTail(log, 500)).toString()}`);
    }
    const process = { id: record.id, pid, startTicks, slot: record.slot };
    const entry: Entry = { process, log, gone: deferred() };
    this.#vms.set(record.id, entry);
    const written = this.#options.records.write({ ...record, process: { pid, startTicks } });
    // The record goes away after it was written, never before.
    void Promise.allSettled([exited, written]).then(async () => {
      const { code, signal } = await exited;
      await this.#ended(entry, code, signal);
    });
    try {
      await written;
    } catch (error) {
      // Without a record the next launcher would not know it.
      this.#signal(entry, 'SIGKILL');
      await entry.gone.promise;
      throw error;
    }
    return process;
  }

  async #adopt(record: VmRecordFile, { pid, startTicks }: { pid: number; startTicks: number }): Promise<void> {
    const log = await this.#options.home.openLog(record.logFile).catch(() => undefined);
    const process = { id: record.id, pid, startTicks, slot: record.slot };
    this.#vms.set(record.id, { process, log, gone: deferred() });
    this.#adopted.add(record.id);
    this.#options.logger.info({ vm: record.id, pid, slot: record.slot }, 'running VM taken over');
  }

  #checkAdopted(): void {
    for (const id of this.#adopted) {
      const entry = this.#vms.get(id);
      if (entry && isAlive(entry.process)) continue;
      this.#adopted.delete(id);
      if (entry) void this.#ended(entry, null, null);
    }
  }

  async #ended(entry: Entry, code: number | null, signal: string | null): Promise<void> {
    const { id, pid, slot } = entry.process;
    const { cgroups, logger, onExit } = this.#options;
    const oom = await cgroups.oomKilled(cgroupName({ id, slot }));
    await this.#forget({ id, slot }).catch((error) => logger.error({ err: error, vm: id }, 'leftovers of a VM'));
    await entry.log?.close();
    this.#vms.delete(id);
    entry.gone.resolve();
    logger.info({ vm: id, pid, code, signal, oom }, 'VM ended');
    onExit({ id, pid, code, signal, oom });
  }

  async #forget(record: Pick<VmRecordFile, 'id' | 'slot'>): Promise<void> {
    await this.#options.cgroups.remove(cgroupName(record));
    await this.#options.records.remove(record.id);
  }

  async #giveDirectory(path: string, uid: number): Promise<void> {
    await using directory = await this.#options.home.makeDirectory(path);
    this.#refuseForeign(path, (await directory.stat()).uid, uid);
    await directory.chmod(0o700);
    await directory.chown(uid, uid);
  }

  async #giveFile(path: string, uid: number): Promise<void> {
    await using file = await this.#options.home.openFile(path);
    const stat = await file.stat();
    this.#refuseForeign(path, stat.uid, uid);
    if ((stat.mode & 0o222) === 0) throw new AenvError('bad_request', `${path} is sealed, so no VM may own it`);
    await file.chmod(0o600);
    await file.chown(uid, uid);
  }

  /** Only what is the launcher's own, or was left by a VM that has ended, is given to a VM. */
  #refuseForeign(path: string, owner: number, uid: number): void {
    if (owner === uid || owner === process.geteuid?.()) return;
    const slot = owner - FIRST_SLOT_UID;
    if (slot >= 0 && slot < SLOT_COUNT && !this.inSlot(slot)) return;
    throw new AenvError('bad_request', `${path} belongs to user ${owner}, so it is not given to user ${uid}`);
  }

  #signal({ process }: Entry, signal: NodeJS.Signals): void {
    if (isAlive(process)) sendSignal(process.pid, signal);
  }

  async #trimLogs(): Promise<void> {
    for (const { process, log } of this.#vms.values()) {
      if (!log) continue;
      await trimLog(log).catch((error) => this.#options.logger.warn({ err: error, vm: process.id }, 'log not cut'));
    }
  }
}

/** The slot comes first: unlike ids, slots are unique among all servers of the machine. */
function cgroupName({ id, slot }: Pick<VmRecordFile, 'id' | 'slot'>): string {
  return `${slot}-${id}`;
}

function startProcess(argv: string[], cwd: string, output: number): Promise<ChildProcess> {
  const [program = '', ...args] = argv;
  const child = spawn(program, args, {
    cwd,
    env: COMMAND_ENVIRONMENT,
    stdio: ['ignore', output, output],
    detached: true,
  });
  return new Promise((resolve, reject) => {
    child.once('spawn', () => resolve(child));
    child.once('error', (error) => reject(spawnError(program, error)));
  });
}
