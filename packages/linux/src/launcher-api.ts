/**
 * The launcher's requests and answers: everything that needs privileges or starts a process.
 *
 * The launcher is a small process of its own, because spawning from a large Node process blocks its event loop, because
 * it is the parent that lets VMs outlive the server, and because it is the one place with privileges. The server talks to
 * it over a unix socket; the launcher checks every field again before it acts.
 */

/** A network slot: a namespace with a tap inside and an address of its own outside. */
export interface Slot {
  /** Number that is unique on the host; addresses and the user id derive from it. */
  index: number;
  /** Name of the network namespace, as `ip netns` shows it. */
  namespace: string;
  /** Name of the tap inside the namespace that the VM attaches to. */
  tap: string;
  /** Address at which the host reaches the guest, every port (the guest's own address is the same in all slots). */
  hostAddress: string;
  /** Unprivileged user and group id that the VMM of this slot runs as; owns the tap. */
  uid: number;
}

/** What the guest may reach. Private and host addresses are refused whatever it says. */
export interface EgressPolicy {
  /** False: no packet leaves the slot except answers to the host. */
  internet: boolean;
}

export interface VmLimits {
  /** Bytes of memory for the VMM process with the guest's RAM in it. */
  memoryBytes: number;
  /** Processor time, in cores. */
  cpus: number;
  /** Processes and threads of the VMM. */
  pids: number;
}

export interface SpawnRequest {
  /** Id of the VM: [a-z0-9-]{1,64}. Names its cgroup and its record. */
  id: string;
  /** Index of the slot whose namespace and user it runs in. */
  slot: number;
  /** Directory that the VMM may write (sockets, state); created with mode 0700 and owned by the slot's user. */
  directory: string;
  /** Files (below AENV_HOME) that become the property of the slot's user before the start, such as the disk overlay. */
  own: string[];
  /** Program and arguments; the program must be one that the launcher allows (`qemu-system-x86_64`, …). */
  argv: string[];
  limits: VmLimits;
  /** File that takes stderr and stdout of the VMM, cut at 1 MiB. */
  logFile: string;
}

/** A VMM process as the launcher sees it; pid and start time together name a process uniquely. */
export interface VmProcess {
  id: string;
  pid: number;
  /** Field 22 of /proc/PID/stat: start time in clock ticks since boot. */
  startTicks: number;
  slot: number;
}

export interface VmExit {
  id: string;
  pid: number;
  /** Null when the launcher was not the parent (it was restarted meanwhile) or a signal ended the process. */
  code: number | null;
  signal: string | null;
  /** True when the kernel's memory limit ended it. */
  oom: boolean;
}

/** How much of a VM's memory a dump wrote. */
export interface MemoryDump {
  /** Pages of 4 KiB that differ from the base. */
  pages: number;
  /** Of these, pages that are all zero (no data in the file). */
  zeroPages: number;
  /** Bytes of the file. */
  fileBytes: number;
}

/** A kernel object with one of our names that no launcher owns. */
export interface Leftover {
  kind: 'namespace' | 'cgroup';
  name: string;
}

/** A tool run on behalf of the server, off the request path. */
export interface JobRequest {
  /** A name from the launcher's list: `qemu-img`, `mke2fs`, `image-pull`, … */
  tool: string;
  args: string[];
  /** Written to the tool's stdin, which is then closed; secrets travel here, never in `args`. */
  stdin?: string;
  /** Milliseconds after which the job is killed. */
  timeoutMs: number;
}

export interface JobResult {
  code: number | null;
  signal: string | null;
  /** The last 64 KiB of each. */
  stdout: string;
  stderr: string;
}

export interface JobOptions {
  /** Called for each full line of stdout as it comes. */
  onLine?: (line: string) => void;
  signal?: AbortSignal;
}

/** The launcher as the rest of the program sees it. Every method rejects with an AenvError. */
export interface Launcher {
  createSlot(policy: EgressPolicy): Promise<Slot>;
  setPolicy(slot: number, policy: EgressPolicy): Promise<void>;
  /** Removes namespace, links and rules; no error when it is gone already. Refused while a VM of ours runs in it. */
  destroySlot(slot: number): Promise<void>;
  listSlots(): Promise<Slot[]>;

  spawnVm(request: SpawnRequest): Promise<VmProcess>;
  /** SIGTERM, then SIGKILL after `graceMs` (0 = at once); returns when the process is gone. No error when it was gone. */
  killVm(id: string, graceMs: number): Promise<void>;
  listVms(): Promise<VmProcess[]>;
  /** Makes `path` (below AENV_HOME, not sealed) the property of the user that the running VM `id` runs as. */
  giveFile(id: string, path: string): Promise<void>;
  /** Called for every VMM that ends, however it ends. Returns the function that stops the calls. */
  onVmExit(listener: (exit: VmExit) => void): () => void;

  /**
   * Writes the pages that the stopped VM has changed since it was restored to `file` (spec/formats/memory-diff.md), by
   * way of /proc/PID/pagemap and /proc/PID/mem. `memoryFile` names the mapping of guest RAM. `onRead` is called when the
   * VM may run again, with the file still being written.
   */
  dumpMemory(id: string, memoryFile: string, file: string, onRead?: () => void): Promise<MemoryDump>;
  /** Writes the pages of `file` into a VM that waits for its incoming state. Before the device state is loaded. */
  patchMemory(id: string, memoryFile: string, file: string): Promise<void>;
  /** Gives `path` (below AENV_HOME) to the launcher's own user and takes away every write permission. */
  seal(path: string): Promise<void>;

  /** What launchers left that were killed in between two steps; with `remove` it is gone afterwards. */
  leftovers(remove: boolean): Promise<Leftover[]>;

  run(request: JobRequest, options?: JobOptions): Promise<JobResult>;
  close(): Promise<void>;
}
