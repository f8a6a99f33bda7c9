/**
 * A host in memory: VMs and slots that outlive the orchestrators that work with them, as real ones outlive the server.
 * An orchestrator reaches it over a `Connection`, every call of which can be made to fail or to be the last one.
 */
import { access, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Launcher, Slot, VmProcess } from '@aenv/linux';
import { AenvError } from '@aenv/std';
import type { RestoreRequest, Vm, VmEnd, VmmDriver, VmRecord } from '@aenv/vmm';
import type { GuestPort } from '../guest-port.ts';

export interface FakeVm {
  record: VmRecord;
  slot: Slot;
  running: boolean;
  /** The guest's memory. */
  value: number;
  ended: PromiseWithResolvers<VmEnd>;
}

type Fault = { at: number; how: 'fail' | 'die_before' | 'die_after' };

/** What a state file holds. A state fits only the disk that it was saved with: nothing may have run on that since. */
interface FakeState {
  value: number;
  disk?: { file: string; runs: number };
}

export class FakeHost {
  readonly vms = new Map<string, FakeVm>();
  readonly slots = new Map<number, Slot>();
  /** Commands that guests were asked to run, and what they answer. */
  readonly commands: { script: string }[] = [];
  exitCodes = new Map<string, number>();
  failSaves = false;
  /** What a merge of disk layers does. */
  merging: 'work' | 'fail' | 'hang' = 'work';
  readonly merges = { failed: 0 };
  /** Paths that every VM may read and none may write. */
  readonly sealed = new Set<string>();
  /** Disk of every image; undefined: each has a file of its own, made by the pull. */
  imageDisk: string | undefined = '/dev/null';
  /** Restores wait for it. */
  restoring: PromiseWithResolvers<void> | undefined;
  /** How often something has run on each disk. */
  readonly disks = new Map<string, number>();
  /** VMs that have ever been there. */
  started = 0;
  #nextSlot = 1;

  addSlot(): Slot {
    const index = this.#nextSlot;
    this.#nextSlot += 1;
    const slot = {
      index,
      namespace: `aenv-${index}`,
      tap: 'tap0',
      hostAddress: `10.11.0.${index}`,
      uid: 2_000_000 + index,
    };
    this.slots.set(index, slot);
    return slot;
  }

  addVm(request: Omit<RestoreRequest, 'stateFile'>, value: number): FakeVm {
    this.started += 1;
    const vm: FakeVm = {
      slot: request.slot,
      running: false,
      value,
      ended: Promise.withResolvers(),
      record: {
        driver: 'fake',
        id: request.id,
        pid: 100 + this.started,
        startTicks: 100 + this.started,
        slot: request.slot.index,
        directory: request.directory,
        memoryFile: request.memoryFile,
        diskFile: request.diskFile,
      },
    };
    this.vms.set(request.id, vm);
    return vm;
  }

  endVm(id: string, cause: VmEnd['cause']): void {
    this.vms.get(id)?.ended.resolve({ cause, detail: '' });
    this.vms.delete(id);
  }

  /** The running guest at `address`; undefined when nobody answers there. */
  guestAt(address: string): FakeVm | undefined {
    return [...this.vms.values()].find((vm) => vm.running && vm.slot.hostAddress === address);
  }
}

/** One server's way to the host. */
export class Connection {
  readonly #host: FakeHost;
  readonly #fault: Fault | undefined;
  readonly #reached = Promise.withResolvers<void>();
  #calls = 0;
  #dead = false;

  constructor(host: FakeHost, fault?: Fault) {
    this.#host = host;
    this.#fault = fault;
  }

  get calls(): number {
    return this.#calls;
  }

  /** Ends the server at this end, as kill -9 does. */
  die(): void {
    this.#dead = true;
    this.#reached.resolve();
  }

  /** Resolves when the server at this end has died. */
  get died(): Promise<void> {
    return this.#reached.promise;
  }

  /** Every effect on the host goes through here. A dead server hears nothing and does nothing any more. */
  async #call<T>(effect: () => T | Promise<T>): Promise<T> {
    if (this.#dead) return new Promise<never>(() => {});
    this.#calls += 1;
    if (this.#calls !== this.#fault?.at) return await effect();
    if (this.#fault.how === 'fail') throw new AenvError('internal', 'injected fault');
    if (this.#fault.how === 'die_after') await effect();
    this.die();
    return new Promise<never>(() => {});
  }

  readonly launcher: Launcher = {
    createSlot: () => this.#call(() => this.#host.addSlot()),
    setPolicy: () => this.#call(() => {}),
    destroySlot: (index) =>
      this.#call(() => {
        const user = [...this.#host.vms.values()].find((vm) => vm.slot.index === index);
        if (user) throw new AenvError('conflict', `slot ${index} is in use by ${user.record.id}`);
        this.#host.slots.delete(index);
      }),
    listSlots: () => this.#call(() => [...this.#host.slots.values()]),
    spawnVm: () => Promise.reject(new Error('drivers of tests do not spawn')),
    leftovers: () => Promise.resolve([]),
    giveFile: () => Promise.reject(new Error('drivers of tests give no files')),
    killVm: (id) => this.#call(() => this.#host.endVm(id, 'requested')),
    listVms: () =>
      this.#call(() =>
        [...this.#host.vms.values()].map(
          ({ record }): VmProcess => ({
            id: record.id,
            pid: record.pid,
            startTicks: record.startTicks,
            slot: record.slot,
          }),
        ),
      ),
    onVmExit: () => () => {},
    dumpMemory: () => Promise.reject(new Error('drivers of tests do not dump')),
    patchMemory: () => Promise.reject(new Error('drivers of tests do not patch')),
    seal: (path) => this.#call(() => void this.#host.sealed.add(path)),
    run: ({ tool, args, stdin }, options) =>
      this.#call(async () => {
        if (tool === 'qemu-img') await writeFile(args.at(-2) ?? '', 'qcow2');
        if (tool === 'image-pull') options?.onLine?.(await pull(stdin ?? '', this.#host.imageDisk));
        return { code: 0, signal: null, stdout: '', stderr: '' };
      }),
    close: () => Promise.resolve(),
  };

  readonly driver: VmmDriver = {
    name: 'fake',
    boot: (request) =>
      this.#call(() => {
        return this.#vm(this.#host.addVm(request, 0));
      }),
    restore: (request) =>
      this.#call(async () => {
        const { value, disk } = JSON.parse(await readFile(request.stateFile, 'utf8')) as FakeState;
        if (disk && disk.runs !== this.#host.disks.get(disk.file)) {
          throw new AenvError('restore_failed', 'the disk has changed since the state was saved');
        }
        await this.#host.restoring?.promise;
        return this.#vm(this.#host.addVm(request, value));
      }),
    adopt: (record) =>
      this.#call(() => {
        const vm = this.#host.vms.get(record.id);
        return vm?.record.pid === record.pid ? this.#vm(vm) : undefined;
      }),
  };

  #vm(vm: FakeVm): Vm {
    const alive = () => {
      if (!this.#host.vms.has(vm.record.id)) throw new AenvError('vmm_failed', 'the VM is gone');
    };
    const { disks } = this.#host;
    const save = (file: string, disk?: FakeState['disk']) =>
      writeFile(file, JSON.stringify({ value: vm.value, disk } satisfies FakeState));
    return {
      get record() {
        return vm.record;
      },
      // A dead server hears of nothing.
      ended: vm.ended.promise.then((end) => (this.#dead ? new Promise<never>(() => {}) : end)),
      stop: () =>
        this.#call(() => {
          alive();
          vm.running = false;
        }),
      resume: () =>
        this.#call(() => {
          alive();
          vm.running = true;
          const { diskFile } = vm.record;
          disks.set(diskFile, (disks.get(diskFile) ?? 0) + 1);
        }),
      saveTemplate: (file) =>
        this.#call(async () => {
          alive();
          await writeFile(vm.record.memoryFile, '');
          await save(file);
        }),
      savePause: (stateFile, memoryDiff) =>
        this.#call(async () => {
          alive();
          if (this.#host.failSaves) throw new AenvError('snapshot_failed', 'no space for it');
          // The disk may be sealed at the same time.
          const { diskFile } = vm.record;
          await writeFile(memoryDiff, '');
          await save(stateFile, { file: diskFile, runs: disks.get(diskFile) ?? 0 });
          return { pages: 1, zeroPages: 0, fileBytes: 0 };
        }),
      addLayer: (layer) =>
        this.#call(async () => {
          alive();
          await access(layer);
        }),
      sealDisk: (layer) =>
        this.#call(() => {
          alive();
          if (vm.running) throw new Error('the disk of a running VM cannot be sealed');
          vm.record = { ...vm.record, diskFile: layer };
        }),
      removeLayer: () => this.#call(alive),
      mergeDisk: (base, signal) =>
        this.#call(async () => {
          alive();
          await access(base);
          signal.throwIfAborted();
          if (this.#host.merging === 'hang') await aborted(signal);
          if (this.#host.merging === 'work') return;
          this.#host.merges.failed += 1;
          throw new AenvError('vmm_failed', 'the disk could not be merged');
        }),
      kill: () => this.#call(() => this.#host.endVm(vm.record.id, 'requested')),
    };
  }

  readonly guests: GuestPort = {
    greet: (address) => this.#call(() => void this.#guest(address)),
    sync: (address) => this.#call(() => void this.#guest(address)),
    metrics: (address) =>
      this.#call(() => {
        const { value } = this.#guest(address);
        return { cpuCount: 1, cpuUsedPct: 1, memUsed: value, memTotal: 2, memCache: 0, diskUsed: 1, diskTotal: 2 };
      }),
    start: (address, command) =>
      this.#call(() => {
        this.#guest(address);
        this.#host.commands.push({ script: command.script });
        return { pid: 1, exit: Promise.resolve(this.#host.exitCodes.get(command.script) ?? 0) };
      }),
  };

  #guest(address: string): FakeVm {
    const vm = this.#host.guestAt(address);
    if (!vm) throw new AenvError('guest_unreachable', `nobody answers at ${address}`);
    return vm;
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
}

/** What the image job answers: an image that exists, or the error for one named `missing`. */
async function pull(stdin: string, imageDisk: string | undefined): Promise<string> {
  const { reference, destination } = JSON.parse(stdin) as { reference: string; destination: string };
  if (reference === 'missing') {
    return JSON.stringify({ event: 'error', code: 'image_not_found', message: 'no such image' });
  }
  const diskPath = imageDisk ?? join(destination, `${reference}.raw`);
  if (imageDisk === undefined) {
    await mkdir(destination, { recursive: true });
    await writeFile(diskPath, 'disk');
  }
  return JSON.stringify({
    event: 'done',
    digest: `sha256:${Buffer.from(reference).toString('hex').padEnd(64, '0')}`,
    diskPath,
    config: { env: { FROM: 'image' }, workingDir: '/', user: 'root:root' },
  });
}
