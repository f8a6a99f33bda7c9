/** When somebody last used a sandbox through the proxy. */
import type { EventEmitter } from 'node:events';

interface Use {
  open: number;
  /** Milliseconds since the epoch. */
  endedAt: number;
}

export class Activity {
  readonly #uses = new Map<string, Use>();

  /** Counts a request or tunnel as in progress until `end` closes. */
  begin(sandboxId: string, end: EventEmitter): void {
    const use = this.#uses.get(sandboxId) ?? { open: 0, endedAt: 0 };
    this.#uses.set(sandboxId, use);
    use.open += 1;
    end.once('close', () => {
      use.open -= 1;
      use.endedAt = Date.now();
    });
  }

  /** End of the last use, milliseconds since the epoch (0 = none known); undefined while there is one. */
  quietSince(sandboxId: string): number | undefined {
    const use = this.#uses.get(sandboxId);
    if (!use) return 0;
    return use.open > 0 ? undefined : use.endedAt;
  }

  /** The sandbox is gone. */
  forget(sandboxId: string): void {
    if (this.#uses.get(sandboxId)?.open === 0) this.#uses.delete(sandboxId);
  }
}
