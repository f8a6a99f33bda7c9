/**
 * A driver without virtual machines, for tests of what stands above: deterministic, with faults on demand. A guest is a map
 * of texts for its memory; files are real, so a store above sees what it would see with QEMU.
 *
 * VMs belong to a `FakeMachine`, drivers only talk to it: a second driver on the same machine is a restarted server.
 */
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import type { MemoryDump } from '@aenv/linux';
import { AenvError, isSystemError } from '@aenv/std';
import type { BootRequest, RestoreRequest, Vm, VmEnd, VmmDriver, VmRecord, VmStart } from './driver.ts';

export type FakeOperation =
  | 'boot'
  | 'restore'
  | 'adopt'
  | 'stop'
  | 'resume'
  | 'saveTemplate'
  | 'savePause'
  | 'addLayer'
  | 'sealDisk'
  | 'mergeDisk'
  | 'kill';

const PAGE_BYTES = 4096;
const STATE_TEXT = 'devices of ';

interface FakeVm {
  record: VmRecord;
  /** Content of the guest's RAM; each key counts as one page. */
  memory: Map<string, string>;
  /** What the memory file holds; undefined for a VM that maps it shared. */
  base: ReadonlyMap<string, string> | undefined;
  running: boolean;
  ended: PromiseWithResolvers<VmEnd>;
}

export class FakeMachine {
  readonly #vms = new Map<string, FakeVm>();
  readonly #failures = new Map<FakeOperation, AenvError[]>();
  readonly #gates = new Map<FakeOperation, PromiseWithResolvers<void>>();
  #nextPid = 1000;

  /** Ids of the VMs that exist, in the order of their start. */
  get ids(): string[] {
    return [...this.#vms.keys()];
  }

  /** The guest's memory, to read and change; undefined when the VM is gone. */
  memory(id: string): Map<string, string> | undefined {
    return this.#vms.get(id)?.memory;
  }

  /** Whether the processors run; false when the VM is gone. */
  isRunning(id: string): boolean {
    return this.#vms.get(id)?.running ?? false;
  }

  /** Lets the next call of `operation` that has no failure waiting fail. Its effect does not happen. */
  failNext(operation: FakeOperation, error = new AenvError('vmm_failed', `injected: ${operation}`)): void {
    this.#failures.set(operation, [...(this.#failures.get(operation) ?? []), error]);
  }

  /** Makes calls of `operation` wait until the function that it returns is called. */
  hold(operation: FakeOperation): () => void {
    const gate = Promise.withResolvers<void>();
    this.#gates.set(operation, gate);
    return () => {
      if (this.#gates.get(operation) === gate) this.#gates.delete(operation);
      gate.resolve();
    };
  }

  /** Ends a VM from inside or by force, as a guest, a crash or another process would. No error when it is gone. */
  end(id: string, cause: VmEnd['cause'], detail = ''): void {
    const vm = this.#vms.get(id);
    this.#vms.delete(id);
    vm?.ended.resolve({ cause, detail });
  }

  /** Every call of a driver passes here first. */
  async enter(operation: FakeOperation): Promise<void> {
    await this.#gates.get(operation)?.promise;
    const failure = this.#failures.get(operation)?.shift();
    if (failure) throw failure;
  }

  find(id: string): FakeVm | undefined {
    return this.#vms.get(id);
  }

  /** Adds a VM with this memory, stopped; `base` as in FakeVm. */
  add(start: VmStart, memory: Map<string, string>, base: FakeVm['base']): FakeVm {
    if (this.#vms.has(start.id)) throw new AenvError('conflict', `a VM ${start.id} is running already`);
    const { id, slot, directory, memoryFile, diskFile } = start;
    const pid = this.#nextPid++;
    const record = { driver: 'fake', id, pid, startTicks: pid, slot: slot.index, directory, memoryFile, diskFile };
    const vm: FakeVm = { record, memory, base, running: false, ended: Promise.withResolvers() };
    this.#vms.set(id, vm);
    return vm;
  }
}

export function createFakeDriver(machine: FakeMachine): VmmDriver {
  return {
    name: 'fake',
    boot: (request) => boot(machine, request),
    restore: (request) => restore(machine, request),
    adopt: async (record) => {
      await machine.enter('adopt');
      const vm = machine.find(record.id);
      return vm && vm.record.pid === record.pid ? handle(machine, vm) : undefined;
    },
  };
}

async function boot(machine: FakeMachine, request: BootRequest): Promise<Vm> {
  await machine.enter('boot');
  await requireFile(request.diskFile, 'sandbox_start_failed');
  const shared = request.memory === 'shared';
  if (shared) await writeMap(request.memoryFile, new Map());
  else await requireFile(request.memoryFile, 'sandbox_start_failed');
  return handle(machine, machine.add(request, new Map(), shared ? undefined : new Map()));
}

async function restore(machine: FakeMachine, request: RestoreRequest): Promise<Vm> {
  await machine.enter('restore');
  for (const file of [request.diskFile, request.stateFile]) await requireFile(file, 'restore_failed');
  if (!(await readFile(request.stateFile, 'utf8')).startsWith(STATE_TEXT)) {
    throw new AenvError('restore_failed', 'the saved device state is damaged or incomplete');
  }
  const base = await readMap(request.memoryFile);
  const diff = request.memoryDiff === undefined ? [] : await readMap(request.memoryDiff);
  return handle(machine, machine.add(request, new Map([...base, ...diff]), base));
}

/** The machine's VM as a driver hands it out. */
function handle(machine: FakeMachine, vm: FakeVm): Vm {
  const { id } = vm.record;
  const added = new Set<string>();
  const enter = async (operation: FakeOperation) => {
    await machine.enter(operation);
    if (machine.find(id) !== vm) throw new AenvError('vmm_failed', `the VM ${id} is gone`);
  };
  const saving = async (operation: FakeOperation, files: string[], save: () => Promise<void>) => {
    try {
      await enter(operation);
      if (vm.running) throw new Error(`the VM ${id} runs while its state is to be saved`);
      await save();
    } catch (error) {
      await Promise.all(files.map((file) => rm(file, { force: true })));
      const { message } = AenvError.from(error);
      throw new AenvError('snapshot_failed', `the state of the VM could not be saved: ${message}`, { cause: error });
    }
  };
  return {
    get record() {
      return vm.record;
    },
    ended: vm.ended.promise,
    stop: async () => {
      await enter('stop');
      vm.running = false;
    },
    resume: async () => {
      await enter('resume');
      vm.running = true;
    },
    saveTemplate: async (stateFile) => {
      if (vm.base) throw new Error(`the VM ${id} has private memory: it is no template`);
      await saving('saveTemplate', [stateFile], async () => {
        await writeMap(vm.record.memoryFile, vm.memory);
        await writeFile(stateFile, `${STATE_TEXT}${id}`);
      });
    },
    savePause: async (stateFile, memoryDiff) => {
      const { base } = vm;
      if (!base) throw new Error(`the VM ${id} has shared memory: it has no base`);
      const changed = new Map([...vm.memory].filter(([key, value]) => base.get(key) !== value));
      await saving('savePause', [stateFile, memoryDiff], async () => {
        await writeFile(stateFile, `${STATE_TEXT}${id}`);
        await writeMap(memoryDiff, changed);
      });
      return dumpOf(changed);
    },
    addLayer: async (layer) => {
      await enter('addLayer');
      await requireFile(layer, 'vmm_failed');
      added.add(layer);
    },
    sealDisk: async (layer) => {
      await enter('sealDisk');
      if (vm.running) throw new Error(`the VM ${id} runs while its disk is to be sealed`);
      if (!added.delete(layer)) throw new AenvError('vmm_failed', `${layer} was not added`);
      vm.record = { ...vm.record, diskFile: layer };
    },
    removeLayer: async (layer) => {
      added.delete(layer);
    },
    mergeDisk: async (base, signal) => {
      await enter('mergeDisk');
      signal.throwIfAborted();
      await requireFile(base, 'vmm_failed');
    },
    kill: async () => {
      await machine.enter('kill');
      machine.end(id, 'requested');
    },
  };
}

function dumpOf(changed: Map<string, string>): MemoryDump {
  return { pages: changed.size, zeroPages: 0, fileBytes: changed.size * PAGE_BYTES };
}

async function writeMap(file: string, map: Map<string, string>): Promise<void> {
  await writeFile(file, JSON.stringify([...map]));
}

async function readMap(file: string): Promise<Map<string, string>> {
  await requireFile(file, 'restore_failed');
  return new Map(JSON.parse(await readFile(file, 'utf8')) as [string, string][]);
}

async function requireFile(
  file: string,
  code: 'sandbox_start_failed' | 'restore_failed' | 'vmm_failed',
): Promise<void> {
  try {
    await stat(file);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) throw new AenvError(code, `${file} does not exist`);
    throw AenvError.from(error, code);
  }
}
