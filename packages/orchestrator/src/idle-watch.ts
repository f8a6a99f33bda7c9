/**
 * Pauses sandboxes that nobody uses: no traffic through the proxy (commands and files are traffic too) and a quiet
 * processor, for a while. Only those that the next request wakes again: for others a pause would look like a failure.
 */
import type { Context } from './options.ts';
import type { SandboxRow } from './sandbox-table.ts';
import type { Sandboxes } from './sandboxes.ts';

/** Share of one processor below which a guest is quiet; an emulated one that does nothing uses a hundredth. */
const QUIET_CPU = 0.05;

interface Mark {
  pid: number;
  since: number;
  cpuMs: number;
}

export class IdleWatch {
  readonly #context: Context;
  readonly #sandboxes: Sandboxes;
  readonly #marks = new Map<string, Mark>();

  constructor(context: Context, sandboxes: Sandboxes) {
    this.#context = context;
    this.#sandboxes = sandboxes;
  }

  /** Called by a timer. Never rejects. */
  sweep(): void {
    if (this.#context.idle.pauseAfterSeconds === 0) return;
    const seen = new Set<string>();
    for (const row of this.#sandboxes.rows()) {
      if (row.phase !== 'running' || !row.run || !row.settings.autoResume) continue;
      seen.add(row.id);
      if (this.#isIdle(row.id, row.run.vm.pid)) this.#pause(row);
    }
    for (const id of this.#marks.keys()) if (!seen.has(id)) this.#marks.delete(id);
  }

  #isIdle(id: string, pid: number): boolean {
    const { idle, clock } = this.#context;
    const now = clock.now();
    const quietSince = idle.quietSince(id);
    const mark = this.#marks.get(id);
    const isUsed = quietSince === undefined || (mark !== undefined && quietSince > mark.since);
    if (!mark || mark.pid !== pid || isUsed) {
      this.#marks.set(id, { pid, since: now, cpuMs: idle.cpuMs(pid) });
      return false;
    }
    const elapsed = now - mark.since;
    if (elapsed < idle.pauseAfterSeconds * 1000) return false;
    const cpuMs = idle.cpuMs(pid);
    const busy = (cpuMs - mark.cpuMs) / elapsed;
    this.#marks.set(id, { pid, since: now, cpuMs });
    return busy < QUIET_CPU;
  }

  #pause({ id, settings }: SandboxRow): void {
    const { logger } = this.#context;
    logger.info({ sandboxId: id }, 'nobody uses the sandbox: it is paused');
    void this.#sandboxes.pause(id, settings.pauseMemory).catch((err: unknown) => {
      logger.warn({ err, sandboxId: id }, 'an idle sandbox could not be paused; it is tried again');
    });
  }
}
