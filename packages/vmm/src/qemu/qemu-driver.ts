/** Starts, restores and finds QEMU processes. Every process is spawned by the launcher; we talk to it over QMP. */
import { open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Launcher, VmExit, VmProcess } from '@aenv/linux';
import { AenvError, type ErrorCode, isSystemError, type Logger, pollUntil } from '@aenv/std';
import type { BootRequest, RestoreRequest, Vm, VmmDriver, VmRecord, VmStart } from '../driver.ts';
import { diskFileOf } from './disk.ts';
import { endMerge } from './disk-merge.ts';
import { lastLines, readLog, VmExits } from './exits.ts';
import { hostClockArguments } from './host-clock.ts';
import {
  type Accelerator,
  bootArguments,
  CONSOLE_LOG,
  DEFAULT_QEMU,
  QMP_SOCKET,
  restoreArguments,
  vmLimits,
} from './machine.ts';
import { QemuVm } from './qemu-vm.ts';
import { checkSocketPath, QmpClient } from './qmp.ts';
import { asRecord } from './qmp-lines.ts';
import { type StateOrigin, stateOrigin } from './state-file.ts';

/** A loaded machine takes seconds to start a process; an idle one 30 ms. */
const START_TIMEOUT_MS = 30_000;
const LOAD_TIMEOUT_MS = 30_000;
const LOAD_POLL_MS = 1;
const ADOPT_TIMEOUT_MS = 5000;

export interface QemuDriverOptions {
  launcher: Launcher;
  /** What `probeAccelerator` found. */
  accel: Accelerator;
  /** A program that the launcher allows; `qemu-system-x86_64` by default. */
  qemuPath?: string;
  logger: Logger;
}

/** How a start is to go. */
interface StartPlan {
  argv: string[];
  /** Files that become the VMM user's. */
  own: string[];
  memory: 'shared' | 'private';
  /** Code of the error when it fails. */
  failure: ErrorCode;
  /** What is left to do once QEMU answers. */
  prepare: (qmp: QmpClient) => Promise<void>;
}

export interface QemuVmmDriver extends VmmDriver {
  /** Lets go of all VMs; they run on and can be adopted by another driver. Nothing can be done with this one afterwards. */
  disconnect(): void;
}

export function createQemuDriver(options: QemuDriverOptions): QemuVmmDriver {
  return new QemuDriver(options);
}

class QemuDriver implements QemuVmmDriver {
  readonly name = 'qemu';
  readonly #launcher: Launcher;
  readonly #accel: Accelerator;
  readonly #qemu: string;
  readonly #logger: Logger;
  readonly #exits: VmExits;
  readonly #connections = new Set<QmpClient>();

  constructor({ launcher, accel, qemuPath, logger }: QemuDriverOptions) {
    this.#launcher = launcher;
    this.#accel = accel;
    this.#qemu = qemuPath ?? DEFAULT_QEMU;
    this.#logger = logger;
    this.#exits = new VmExits(launcher);
  }

  async boot(request: BootRequest): Promise<Vm> {
    const clock = this.#accel === 'tcg' ? await hostClockArguments() : [];
    return this.#start(request, {
      argv: bootArguments(this.#qemu, this.#accel, request, clock),
      own: request.memory === 'shared' ? [request.memoryFile, request.diskFile] : [request.diskFile],
      memory: request.memory,
      failure: 'sandbox_start_failed',
      prepare: async () => {},
    });
  }

  async restore(request: RestoreRequest): Promise<Vm> {
    const state = await readState(request.stateFile);
    const origin = stateOrigin(state);
    if (origin.accel !== this.#accel) throw wrongAccelerator(origin, this.#accel);
    return this.#start(request, {
      argv: restoreArguments(this.#qemu, this.#accel, request),
      own: [request.diskFile],
      memory: 'private',
      failure: 'restore_failed',
      prepare: async (qmp) => {
        if (request.memoryDiff !== undefined) {
          // Before the device state: the queues of the devices are read from RAM when it loads.
          await this.#launcher.patchMemory(request.id, request.memoryFile, request.memoryDiff);
        }
        await loadState(qmp, join(request.directory, 'incoming.state'), state, origin);
      },
    });
  }

  async adopt(record: VmRecord): Promise<Vm | undefined> {
    const exit = this.#exits.expect(record.id);
    const isSame = ({ id, pid, startTicks }: VmProcess) =>
      id === record.id && pid === record.pid && startTicks === record.startTicks;
    if (!(await this.#launcher.listVms()).some(isSame)) {
      this.#exits.gone(record.id, record.pid);
      return undefined;
    }
    const qmp = await connect(record.directory, exit, ADOPT_TIMEOUT_MS);
    await endMerge(qmp);
    // Only builds have shared memory, and a build does not outlive the server that runs it.
    return this.#vm({ ...record, diskFile: await diskFileOf(qmp, record.diskFile) }, 'private', qmp, exit);
  }

  disconnect(): void {
    this.#exits.close();
    for (const qmp of this.#connections) qmp.close();
  }

  #vm(record: VmRecord, memory: StartPlan['memory'], qmp: QmpClient, exit: Promise<VmExit>): Vm {
    this.#connections.add(qmp);
    void exit.then(() => this.#connections.delete(qmp));
    return new QemuVm({ launcher: this.#launcher, accel: this.#accel, record, memory, qmp, exit });
  }

  async #start(start: VmStart, plan: StartPlan): Promise<Vm> {
    const begun = performance.now();
    checkSocketPath(join(start.directory, QMP_SOCKET));
    if (plan.memory === 'shared') await makeMemoryFile(start.memoryFile, start.resources.memoryMb);
    const exit = this.#exits.expect(start.id);
    let qmp: QmpClient | undefined;
    try {
      const spawned = await this.#spawn(start, plan);
      qmp = await connect(start.directory, exit, START_TIMEOUT_MS);
      await plan.prepare(qmp);
      const record = recordOf(start, spawned);
      this.#logger.debug({ vm: start.id, memory: plan.memory, ms: performance.now() - begun }, 'QEMU started');
      return this.#vm(record, plan.memory, qmp, exit);
    } catch (error) {
      qmp?.close();
      throw await this.#giveUp(start, plan.failure, error);
    }
  }

  #spawn(start: VmStart, { argv, own }: StartPlan): Promise<VmProcess> {
    return this.#launcher.spawnVm({
      id: start.id,
      slot: start.slot.index,
      directory: start.directory,
      own,
      argv,
      limits: vmLimits(this.#accel, start.resources),
      logFile: join(start.directory, CONSOLE_LOG),
    });
  }

  /** Ends what was started; the error to throw, with what QEMU said. */
  async #giveUp(start: VmStart, code: ErrorCode, error: unknown): Promise<AenvError> {
    await this.#launcher.killVm(start.id, 0).catch((cause: unknown) => {
      this.#logger.error({ vm: start.id, error: cause }, 'a VM that failed to start could not be killed');
    });
    this.#exits.gone(start.id, 0);
    const reason = AenvError.from(error);
    if (KEPT_CODES.has(reason.code)) return reason;
    const said = lastLines(await readLog(join(start.directory, CONSOLE_LOG)));
    return new AenvError(code, [reason.message, said].filter(Boolean).join('\n'), {
      remedy: reason.remedy,
      cause: error,
    });
  }
}

/** These say more than that a start failed. */
const KEPT_CODES = new Set<ErrorCode>([
  'capacity_exhausted',
  'config_invalid',
  'disk_full',
  'host_missing_tool',
  'host_unsupported',
  'restore_failed',
]);

function recordOf(start: VmStart, { pid, startTicks }: VmProcess): VmRecord {
  const { id, slot, directory, memoryFile, diskFile } = start;
  return { driver: 'qemu', id, pid, startTicks, slot: slot.index, directory, memoryFile, diskFile };
}

/** A sparse file of the size of guest RAM: a page that the guest never touches takes no disk. */
async function makeMemoryFile(path: string, memoryMb: number): Promise<void> {
  await using file = await open(path, 'w', 0o600);
  await file.truncate(memoryMb * 2 ** 20);
}

/** Connects to a QEMU that was just started; fails at once when it dies. */
async function connect(directory: string, exit: Promise<VmExit>, timeoutMs: number): Promise<QmpClient> {
  const died = new AbortController();
  void exit.then(({ code, signal }) => {
    died.abort(new AenvError('vmm_failed', `QEMU ended before it answered (${signal ?? `exit code ${code}`})`));
  });
  return QmpClient.connect(join(directory, QMP_SOCKET), { timeoutMs, signal: died.signal });
}

/** QEMU runs as another user, so it gets a copy of its own; the directory is fresh and its guest has not run yet. */
async function loadState(qmp: QmpClient, copy: string, state: Buffer, origin: StateOrigin): Promise<void> {
  await writeFile(copy, state, { flag: 'wx', mode: 0o644 });
  await qmp.execute('migrate-incoming', { uri: `file:${copy}` });
  try {
    await pollUntil('loading the device state', () => loadResult(qmp), {
      intervalMs: LOAD_POLL_MS,
      timeoutMs: LOAD_TIMEOUT_MS,
    });
  } catch (error) {
    if (origin.qemu === qmp.version) throw error;
    throw new AenvError('restore_failed', `QEMU ${qmp.version} did not accept a state that QEMU ${origin.qemu} saved`, {
      remedy: `Install QEMU ${origin.qemu} again, or rebuild the template.`,
      cause: error,
    });
  }
}

/** True when the state is loaded, undefined while it loads. */
async function loadResult(qmp: QmpClient): Promise<true | undefined> {
  const status = asRecord(await qmp.execute('query-status'))?.status;
  if (status === 'inmigrate') {
    const migration = asRecord(await qmp.execute('query-migrate'));
    if (migration?.status === 'failed') {
      throw new AenvError(
        'vmm_failed',
        `QEMU refused the device state: ${migration['error-desc'] ?? 'no reason given'}`,
      );
    }
    return undefined;
  }
  if (status === 'paused') return true;
  throw new AenvError('vmm_failed', `the VM is ${status} after its state was loaded`);
}

async function readState(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    if (isSystemError(error, 'ENOENT'))
      throw new AenvError('restore_failed', `the device state ${path} does not exist`);
    throw AenvError.from(error, 'restore_failed');
  }
}

function wrongAccelerator(origin: StateOrigin, accel: Accelerator): AenvError {
  const names = { kvm: 'hardware virtualisation (KVM)', tcg: 'emulation (TCG)' };
  return new AenvError(
    'restore_failed',
    `the state was saved under ${names[origin.accel]}, but this machine runs VMs by ${names[accel]}`,
    { remedy: 'Rebuild the template on this machine.' },
  );
}
