/**
 * The port between the product and a virtual machine monitor. Three drivers implement it: `qemu`, `firecracker` (later)
 * and `fake`; ARCHITECTURE.md maps each method onto Firecracker's API.
 *
 * A VM's memory is a file. The boot of a template maps it shared, so that after `saveTemplate` the file is the memory
 * snapshot; every other start maps it private, so that the file never changes and what the VM has changed can be found and
 * dumped.
 */

import type { MemoryDump, Slot } from '@aenv/linux';

export interface VmResources {
  cpus: number;
  /** MiB of guest memory. */
  memoryMb: number;
}

/** What every start needs. Paths are absolute. */
export interface VmStart {
  /** Id of this run of the VM, [a-z0-9-]{1,64}; a restore gets a new one. */
  id: string;
  slot: Slot;
  resources: VmResources;
  /** Run directory of this VM: sockets, logs, device state while it is written. */
  directory: string;
  /** The guest's RAM. */
  memoryFile: string;
  /** qcow2 layer that takes the guest's writes; its backing files must be readable for the VMM's user. */
  diskFile: string;
}

export interface BootRequest extends VmStart {
  kernel: string;
  initramfs: string;
  /** Appended to the kernel's command line; words of [0-9A-Za-z_.,:/=+-]. */
  kernelArguments: string[];
  /** shared: `memoryFile` is made, and is the guest's RAM. private: it is there, all zero, and stays so. */
  memory: 'shared' | 'private';
}

export interface RestoreRequest extends VmStart {
  /** Kernel and initramfs of the boot that made the state; the machine must be put together in the same way. */
  kernel: string;
  initramfs: string;
  kernelArguments: string[];
  /** Device state: of the template, or of the pause when `memoryDiff` is given. */
  stateFile: string;
  /** Pages to write over the private mapping of `memoryFile` first. Absent when the state is the template's own. */
  memoryDiff?: string;
}

/** Enough to find a running VM again after a restart of the server. Stored as JSON. */
export interface VmRecord {
  driver: string;
  id: string;
  pid: number;
  startTicks: number;
  slot: number;
  directory: string;
  memoryFile: string;
  diskFile: string;
}

export interface VmEnd {
  cause: 'requested' | 'guest_shutdown' | 'guest_panic' | 'oom' | 'vmm_crash';
  /** The last lines of the VMM's log, for the record. */
  detail: string;
}

export interface Vm {
  /** `diskFile` changes with `sealDisk`. */
  readonly record: Readonly<VmRecord>;
  /** Resolves when the VMM process is gone; never rejects. */
  readonly ended: Promise<VmEnd>;
  /** Stops the virtual processors. No error when they are stopped. */
  stop(): Promise<void>;
  /** Lets them run. No error when they run. */
  resume(): Promise<void>;
  /** Device state of a stopped VM that was booted with shared memory to `stateFile`; `memoryFile` is complete afterwards. Ends nothing. */
  saveTemplate(stateFile: string): Promise<void>;
  /**
   * Device state and changed pages of a stopped VM with private memory. On failure the VM can be resumed as if nothing was. `onRead`
   * is called when it may be resumed, while the files are still being written.
   */
  savePause(stateFile: string, memoryDiff: string, onRead?: () => void): Promise<MemoryDump>;
  /** Opens `layer`, an empty one over the present disk, for `sealDisk`. Changes nothing for the guest. */
  addLayer(layer: string): Promise<void>;
  /** Makes `layer` the disk of the stopped VM: what it stands on is not written any more. `record` follows. */
  sealDisk(layer: string): Promise<void>;
  /** Closes a layer that was added and has not become the disk. */
  removeLayer(layer: string): Promise<void>;
  /**
   * Copies what lies between the disk and `base`, a file that it stands on, into the disk, which then stands on `base`
   * alone. The guest runs meanwhile, and reads the same at any moment. Rejects with the reason of `signal` when that ends
   * it; what has been copied is kept.
   */
  mergeDisk(base: string, signal: AbortSignal): Promise<void>;
  /** Ends the VMM within `graceMs` milliseconds (0 = at once) plus the kernel's time to tear it down. */
  kill(graceMs: number): Promise<void>;
}

export interface VmmDriver {
  readonly name: 'qemu' | 'firecracker' | 'fake';
  // Both return with the processors stopped, so that the caller records the fact before `resume()`.
  /** Puts together a machine that will boot from the kernel. */
  boot(request: BootRequest): Promise<Vm>;
  restore(request: RestoreRequest): Promise<Vm>;
  /** The VM of `record` if it still runs, whatever its processors do; undefined when it is gone. Its record says which disk it has. */
  adopt(record: VmRecord): Promise<Vm | undefined>;
}
