/** What the host asks of aenvd over plain HTTP: is it there, who it is, how it does, is its disk written. */
import { AenvError, sleep } from '@aenv/std';
import type { Connection } from './connection.ts';

/** Body of POST /init. Absent fields leave the guest as it is; `docs/aenvd.md` says what each one does. */
export interface GuestInit {
  /** Resets all other connections to the daemon; processes run on. */
  dropStreams?: boolean;
  sandboxId?: string;
  templateId?: string;
  hostname?: string;
  /** 32 hex digits, as in /etc/machine-id. */
  machineId?: string;
  /** Mixed into the guest's entropy pool. */
  entropy?: Uint8Array;
  /** The guest's clock is set to it. */
  timestamp?: Date;
  /** Replace all variables that were given before. */
  envVars?: Record<string, string>;
  /** The empty string: everybody who reaches the port may use the daemon. */
  accessToken?: string;
  /** The host's key from now on; the client's own `initKey` proves that the caller may say so. */
  initKey?: string;
  defaultUser?: string;
  defaultWorkdir?: string;
}

export interface GuestUsage {
  cpuCount: number;
  /** Percent of one CPU. */
  cpuUsedPct: number;
  /** Bytes, like all below. */
  memUsed: number;
  memTotal: number;
  memCache: number;
  diskUsed: number;
  diskTotal: number;
}

export interface GuestHost {
  /** Resolves as soon as GET /health answers; `guest_unreachable` after `timeoutMs`. */
  waitHealthy(timeoutMs: number, signal?: AbortSignal): Promise<void>;
  init(request: GuestInit): Promise<void>;
  /** Returns when all file systems are written to the disk. */
  sync(): Promise<void>;
  metrics(): Promise<GuestUsage>;
}

/** A guest that was just restored answers its first request slowly, so patience grows from attempt to attempt. */
const FIRST_ATTEMPT_MS = 250;
const LONGEST_ATTEMPT_MS = 2000;
const PAUSE_MS = 5;

export function guestHost(connection: Connection): GuestHost {
  const keyHeaders: Record<string, string> =
    connection.initKey === undefined ? {} : { 'x-aenv-init-key': connection.initKey };

  async function post(path: string, body?: object): Promise<void> {
    const headers: Record<string, string> = { ...keyHeaders };
    if (body) headers['content-type'] = 'application/json';
    const response = await connection.http({ method: 'POST', path, headers, body: body && JSON.stringify(body) });
    await response.body.dump();
  }

  async function isHealthy(attemptMs: number, signal?: AbortSignal): Promise<boolean> {
    const limit = AbortSignal.timeout(attemptMs);
    try {
      const both = signal ? AbortSignal.any([limit, signal]) : limit;
      await (await connection.http({ method: 'GET', path: '/health', signal: both })).body.dump();
      return true;
    } catch {
      signal?.throwIfAborted();
      return false;
    }
  }

  return {
    async waitHealthy(timeoutMs, signal) {
      const end = performance.now() + timeoutMs;
      let attemptMs = FIRST_ATTEMPT_MS;
      for (let left = timeoutMs; left > 0; left = end - performance.now()) {
        if (await isHealthy(Math.ceil(Math.min(attemptMs, left)), signal)) return;
        attemptMs = Math.min(attemptMs * 2, LONGEST_ATTEMPT_MS);
        await sleep(PAUSE_MS, signal);
      }
      throw new AenvError('guest_unreachable', `the guest daemon did not answer within ${timeoutMs} ms`, {
        remedy: 'Look at the sandbox log (`aenv logs ID`) for what its kernel and init said.',
      });
    },
    init: (request) =>
      post('/init', { ...request, entropy: request.entropy && Buffer.from(request.entropy).toString('base64') }),
    sync: () => post('/sync'),
    async metrics() {
      const response = await connection.http({ method: 'GET', path: '/metrics' });
      const raw = (await response.body.json()) as Record<string, number | undefined>;
      const field = (name: string): number => raw[name] ?? 0;
      return {
        cpuCount: field('cpu_count'),
        cpuUsedPct: field('cpu_used_pct'),
        memUsed: field('mem_used'),
        memTotal: field('mem_total'),
        memCache: field('mem_cache'),
        diskUsed: field('disk_used'),
        diskTotal: field('disk_total'),
      };
    },
  };
}
