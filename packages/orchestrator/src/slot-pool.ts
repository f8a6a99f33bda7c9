/** Keeps network slots ready, so that a start does not wait for one, and gives back those that are no longer used. */
import type { EgressPolicy, Launcher, Slot } from '@aenv/linux';
import type { Logger } from '@aenv/std';

/** Slots wait with the policy that most sandboxes ask for. */
const POOLED_POLICY: EgressPolicy = { internet: true };

export interface SlotPoolOptions {
  launcher: Launcher;
  /** Slots kept ready; 0 = each start makes its own. */
  size: number;
  logger: Logger;
}

export class SlotPool {
  readonly #launcher: Launcher;
  readonly #size: number;
  readonly #logger: Logger;
  readonly #ready: Slot[] = [];
  readonly #taken = new Set<number>();
  readonly #releasing = new Set<Promise<void>>();
  #refilling: Promise<void> | undefined;
  #closed = false;

  constructor({ launcher, size, logger }: SlotPoolOptions) {
    this.#launcher = launcher;
    this.#size = size;
    this.#logger = logger;
  }

  /** Of the slots that wait, and of those that were taken and not released. */
  indexes(): number[] {
    return [...this.#ready.map(({ index }) => index), ...this.#taken];
  }

  get readyCount(): number {
    return this.#ready.length;
  }

  /** A slot of one's own with `policy` in force. It is never used again after `release`. */
  async take(policy: EgressPolicy): Promise<Slot> {
    const slot = await this.#next(policy);
    this.#taken.add(slot.index);
    return slot;
  }

  async #next(policy: EgressPolicy): Promise<Slot> {
    const slot = this.#ready.shift();
    this.refill();
    if (!slot) return this.#launcher.createSlot(policy);
    if (policy.internet === POOLED_POLICY.internet) return slot;
    try {
      await this.#launcher.setPolicy(slot.index, policy);
    } catch (error) {
      this.release(slot);
      throw error;
    }
    return slot;
  }

  /** Removes the slot in the background: nobody needs to wait for that. */
  release(slot: Slot): void {
    const work = this.#launcher
      .destroySlot(slot.index)
      .catch((err: unknown) =>
        this.#logger.warn({ err, slot: slot.index }, 'slot not removed; the next start of the server does it'),
      )
      .finally(() => {
        this.#taken.delete(slot.index);
        this.#releasing.delete(work);
      });
    this.#releasing.add(work);
  }

  /** Fills up to the size, one after another, in the background. */
  refill(): void {
    this.#refilling ??= this.#fill().finally(() => {
      this.#refilling = undefined;
    });
  }

  async #fill(): Promise<void> {
    try {
      while (!this.#closed && this.#ready.length < this.#size)
        this.#ready.push(await this.#launcher.createSlot(POOLED_POLICY));
    } catch (err) {
      this.#logger.warn({ err }, 'no network slot could be made ready');
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#refilling;
    for (const slot of this.#ready.splice(0)) this.release(slot);
    await Promise.all(this.#releasing);
  }
}
