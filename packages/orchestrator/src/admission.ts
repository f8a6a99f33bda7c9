/**
 * Whether one more virtual machine may run: as many as configured, no more memory promised than the overcommit allows, and
 * memory and disk that are really there. What does not fit waits its turn for a while, and is then refused with the reason.
 */
import { AenvError } from '@aenv/std';
import type { NodeView } from './engine.ts';
import type { Context } from './options.ts';

/** MiB of the host's memory and disk that no start may take. */
const MEMORY_RESERVE_MB = 512;
const DISK_RESERVE_MB = 512;
/** Starts that may wait at the same time. */
const QUEUE_LENGTH = 200;

/** What runs, or is about to. */
export interface Load {
  running: number;
  /** MiB of guest memory, together. */
  promisedMb: number;
}

interface Waiter {
  memoryMb: number;
  turn: PromiseWithResolvers<void>;
}

export class Admission {
  readonly #context: Context;
  readonly #load: () => Load;
  readonly #queue: Waiter[] = [];

  constructor(context: Context, load: () => Load) {
    this.#context = context;
    this.#load = load;
  }

  /** Does `act` when there is room, which `act` takes before it first waits for anything. `capacity_exhausted` otherwise. */
  async run<T>(memoryMb: number, act: () => Promise<T>): Promise<T> {
    if (this.#queue.length > 0 || this.#obstacle(memoryMb)) await this.#wait(memoryMb);
    return act();
  }

  /** Refuses what would not fit now. */
  check(memoryMb: number): void {
    const obstacle = this.#obstacle(memoryMb);
    if (obstacle) throw obstacle;
  }

  /** Lets the next one in when there is room for it; called by a timer. */
  sweep(): void {
    const [first] = this.#queue;
    if (!first || this.#obstacle(first.memoryMb)) return;
    this.#queue.shift();
    first.turn.resolve();
    // Once it has taken its room, there may be room for another one.
    setImmediate(() => this.sweep());
  }

  node(): NodeView {
    const { limits, freeMemoryMb, totalMemoryMb, freeDiskMb } = this.#context;
    const { running, promisedMb } = this.#load();
    return {
      running,
      maxRunning: limits.maxRunning,
      waiting: this.#queue.length,
      memoryMb: { total: totalMemoryMb, free: Math.floor(freeMemoryMb()), promised: promisedMb, limit: this.#limitMb },
      freeDiskMb: Math.floor(freeDiskMb()),
    };
  }

  get #limitMb(): number {
    return Math.floor((this.#context.totalMemoryMb * this.#context.limits.overcommitPercent) / 100);
  }

  async #wait(memoryMb: number): Promise<void> {
    const waitMs = this.#context.limits.queueSeconds * 1000;
    if (waitMs === 0) return this.check(memoryMb);
    if (this.#queue.length >= QUEUE_LENGTH) {
      throw new AenvError('capacity_exhausted', `${QUEUE_LENGTH} starts wait for room already`, {
        remedy: 'Try again later, or add a machine.',
      });
    }
    const waiter: Waiter = { memoryMb, turn: Promise.withResolvers() };
    this.#queue.push(waiter);
    const timer = setTimeout(() => this.#giveUp(waiter), waitMs);
    try {
      await waiter.turn.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  #giveUp(waiter: Waiter): void {
    const at = this.#queue.indexOf(waiter);
    if (at < 0) return;
    this.#queue.splice(at, 1);
    const reason =
      this.#obstacle(waiter.memoryMb) ?? new AenvError('capacity_exhausted', 'others wait for room longer');
    const waited = `${reason.message}; waited ${this.#context.limits.queueSeconds} s for room`;
    waiter.turn.reject(new AenvError('capacity_exhausted', waited, { remedy: reason.remedy }));
  }

  /** Why one more does not fit. */
  #obstacle(memoryMb: number): AenvError | undefined {
    const { limits, freeMemoryMb, freeDiskMb } = this.#context;
    const { running, promisedMb } = this.#load();
    if (running >= limits.maxRunning) {
      return refusal(
        `${limits.maxRunning} sandboxes are running, which is the configured maximum`,
        'Pause or delete one, or raise sandbox.max_running in the configuration.',
      );
    }
    if (promisedMb + memoryMb > this.#limitMb) {
      return refusal(
        `${promisedMb} MiB of memory are promised to ${running} sandboxes, and ${memoryMb} more would exceed ${this.#limitMb}`,
        'Pause or delete some, or raise sandbox.memory_overcommit in the configuration.',
      );
    }
    if (freeMemoryMb() < MEMORY_RESERVE_MB) {
      return refusal(
        `only ${Math.floor(freeMemoryMb())} MiB of the machine's memory are free, and ${MEMORY_RESERVE_MB} have to stay so`,
        'Pause or delete sandboxes.',
      );
    }
    if (freeDiskMb() < DISK_RESERVE_MB) {
      return refusal(
        `only ${Math.floor(freeDiskMb())} MiB of the disk with AENV_HOME are free, and ${DISK_RESERVE_MB} have to stay so`,
        'Delete sandboxes, snapshots or templates.',
      );
    }
    return undefined;
  }
}

function refusal(message: string, remedy: string): AenvError {
  return new AenvError('capacity_exhausted', message, { remedy });
}
