/** Turns the launcher's exit events into one promise for each VM. */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Launcher, VmExit } from '@aenv/linux';
import { type Deferred, deferred } from '@aenv/std';
import type { VmEnd } from '../driver.ts';

const TAIL_BYTES = 8192;
const TAIL_LINES = 20;

export class VmExits {
  readonly #waiting = new Map<string, Deferred<VmExit>>();

  constructor(launcher: Launcher) {
    launcher.onVmExit((exit) => {
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

/** Why a VM ended, from how its process ended and what its console said last. */
export function describeEnd(exit: VmExit, requested: boolean, detail: string): VmEnd {
  if (requested) return { cause: 'requested', detail };
  if (exit.oom) return { cause: 'oom', detail };
  if (detail.includes('Kernel panic')) return { cause: 'guest_panic', detail };
  if (exit.code === 0) return { cause: 'guest_shutdown', detail };
  const how = exit.signal ? `signal ${exit.signal}` : `exit code ${exit.code ?? 'unknown'}`;
  return { cause: 'vmm_crash', detail: `QEMU ended with ${how}\n${detail}`.trimEnd() };
}

/** The last lines of a log; empty when there is none. The file belongs to an untrusted process. */
export async function tailOf(path: string): Promise<string> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const { size } = await file.stat();
    const start = Math.max(0, size - TAIL_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(TAIL_BYTES), 0, TAIL_BYTES, start);
    const text = printable(buffer.toString('utf8', 0, bytesRead));
    return text.trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
  } catch {
    return '';
  }
}

/** A console carries escape sequences; they must not reach somebody's terminal. */
function printable(text: string): string {
  return text.replaceAll('\r', '').replaceAll(/[^\P{Cc}\n\t]/gu, '');
}
