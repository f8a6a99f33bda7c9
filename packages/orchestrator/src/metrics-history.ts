/** Samples of the running sandboxes' guests, kept for a while. */
import { AenvError, Semaphore } from '@aenv/std';
import type { SandboxMetric } from './engine.ts';
import type { Context } from './options.ts';
import type { RunningGuest } from './sandboxes.ts';

/** Two hours at one sample a minute; a client that asks more often gets a shorter past. */
const SAMPLES_KEPT = 120;
/** A sample this recent is good enough for a request, milliseconds. */
const FRESH_MS = 2_000;
const PARALLEL_SAMPLES = 4;

export class MetricsHistory {
  readonly #context: Context;
  readonly #samples = new Map<string, SandboxMetric[]>();
  readonly #room = new Semaphore(PARALLEL_SAMPLES);

  constructor(context: Context) {
    this.#context = context;
  }

  /** Samples of `guest` within [start, end], with a new one unless the last is recent; of a guest without VM, the past. */
  async of(
    id: string,
    guest: RunningGuest | undefined,
    range: { start?: number; end?: number },
  ): Promise<SandboxMetric[]> {
    const { start = 0, end = Number.POSITIVE_INFINITY } = range;
    const last = this.#samples.get(id)?.at(-1)?.timestamp ?? 0;
    const now = this.#context.clock.now();
    if (guest && now - last >= FRESH_MS && end >= now) await this.#sample(guest);
    return (this.#samples.get(id) ?? []).filter(({ timestamp }) => timestamp >= start && timestamp <= end);
  }

  /** Samples all of `guests`, and forgets those not in `known`. Never rejects. */
  async sampleAll(guests: RunningGuest[], known: ReadonlySet<string>): Promise<void> {
    for (const id of this.#samples.keys()) if (!known.has(id)) this.#samples.delete(id);
    await Promise.all(
      guests.map((guest) =>
        this.#room.run(() => this.#sample(guest)).catch((err: unknown) => this.#missed(guest.id, err)),
      ),
    );
  }

  #missed(sandboxId: string, err: unknown): void {
    this.#context.logger.debug({ err, sandboxId }, 'no metrics: the guest does not answer');
  }

  async #sample({ id, address, token }: RunningGuest): Promise<void> {
    const metrics = await this.#context.guests.metrics(address, token).catch((error: unknown) => {
      throw AenvError.from(error, 'guest_unreachable');
    });
    const samples = this.#samples.get(id) ?? [];
    samples.push({ timestamp: this.#context.clock.now(), ...metrics });
    if (samples.length > SAMPLES_KEPT) samples.shift();
    this.#samples.set(id, samples);
  }
}
