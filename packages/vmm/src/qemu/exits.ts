/** Turns the launcher's exit events into one promise for each VM. */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Launcher, VmExit } from '@aenv/linux';
import { type Deferred, deferred } from '@aenv/std';
import type { VmEnd } from '../driver.ts';

/** Holds the trace that follows a kernel's panic. */
const TAIL_BYTES = 32 << 10;
const DETAIL_LINES = 20;

export class VmExits {
  readonly #waiting = new Map<string, Deferred<VmExit>>();

  /** Ends the subscription. */
  readonly close: () => void;

  constructor(launcher: Launcher) {
    this.close = launcher.onVmExit((exit) => {
      this.#waiting.get(exit.id)?.resolve(exit);
      this.#waiting.delete(exit.id);
    });
  }

  /** Resolves when the VM `id` ends. Ask before the VM can end: an exit that nobody waits for is forgotten. */
  expect(id: string): Promise<VmExit> {
    const known = this.#waiting.get(id);
    if (known) return known.promise;
    const exit = deferred<VmExit>();
    this.#waiting.set(id, exit);
    return exit.promise;
  }

  /** Resolves the promise of a VM that turned out to be gone without an event. */
  gone(id: string, pid: number): void {
    this.#waiting.get(id)?.resolve({ id, pid, code: null, signal: null, oom: false });
    this.#waiting.delete(id);
  }
}

/** Why a VM ended, from how its process ended and what its log says. */
export function describeEnd(exit: VmExit, requested: boolean, log: string): VmEnd {
  const detail = lastLines(log);
  if (requested) return { cause: 'requested', detail };
  if (exit.oom) return { cause: 'oom', detail };
  const panic = log.lastIndexOf('Kernel panic - not syncing');
  if (panic >= 0)
    return { cause: 'guest_panic', detail: log.slice(panic).split('\n').slice(0, DETAIL_LINES).join('\n') };
  if (exit.code === 0) return { cause: 'guest_shutdown', detail };
  const how = exit.signal ? `signal ${exit.signal}` : `exit code ${exit.code ?? 'unknown'}`;
  return { cause: 'vmm_crash', detail: `QEMU ended with ${how}\n${detail}`.trimEnd() };
}

export function lastLines(log: string): string {
  return log.trimEnd().split('\n').slice(-DETAIL_LINES).join('\n');
}

/**
 * The end of a VM's log without control characters, which must not reach anybody's terminal; empty when there is no log.
 * The file belongs to an untrusted process.
 */
export async function readLog(path: string): Promise<string> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const { size } = await file.stat();
    const start = Math.max(0, size - TAIL_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(TAIL_BYTES), 0, TAIL_BYTES, start);
    return buffer.toString('utf8', 0, bytesRead).replaceAll(/[^\P{Cc}\n\t]/gu, '');
  } catch {
    return '';
  }
}
