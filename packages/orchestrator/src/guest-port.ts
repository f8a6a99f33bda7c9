/** What the orchestrator asks of a guest daemon; `aenvd` over the network, or a fake in tests. */

/**
 * woken: it was restored from a memory image, and connections in there lead to clients that are long gone.
 * booted, adopted: its connections are alive.
 * claimed: the same, and it has answered as this sandbox before; only what has changed since is told.
 */
export type Occasion = 'booted' | 'woken' | 'adopted' | 'claimed';

export interface GuestIdentity {
  occasion: Occasion;
  sandboxId: string;
  templateId: string;
  hostname: string;
  envVars: Record<string, string>;
  /** Absent: everybody who reaches the port may use the daemon. */
  accessToken?: string;
  user: string;
  workdir: string;
}

export interface GuestMetrics {
  cpuCount: number;
  cpuUsedPct: number;
  memUsed: number;
  memTotal: number;
  memCache: number;
  diskUsed: number;
  diskTotal: number;
}

export interface GuestCommand {
  /** Run with `/bin/sh -c`. */
  script: string;
  user: string;
  cwd: string;
  tag?: string;
  /** Milliseconds until it is killed; absent: never. */
  timeoutMs?: number;
  onOutput?: (stream: 'stdout' | 'stderr', text: string) => void;
}

/** How long a guest may take to write to its disk what it holds in memory, milliseconds. */
export const SYNC_MS = 60_000;

export interface GreetOptions {
  timeoutMs: number;
  signal: AbortSignal;
}

export interface GuestPort {
  /**
   * Waits for the daemon and gives the guest its identity, the time and fresh entropy; `guest_unreachable` after
   * `timeoutMs`. An abort ends it at once: the address may soon be that of another guest.
   */
  greet(address: string, initKey: string, identity: GuestIdentity, options: GreetOptions): Promise<void>;
  /** Writes all file systems to the disk; `timeout` after `timeoutMs`. */
  sync(address: string, initKey: string, timeoutMs: number): Promise<void>;
  metrics(address: string, accessToken?: string): Promise<GuestMetrics>;
  /** Starts a command; `exit` resolves with its exit code and rejects when the stream is lost. */
  start(address: string, command: GuestCommand): Promise<{ pid: number; exit: Promise<number> }>;
}
