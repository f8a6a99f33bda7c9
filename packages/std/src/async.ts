/** Small tools for concurrent work: deferred values, limits, one-at-a-time, deadlines. */
import { AenvError } from './errors.ts';

export interface Deferred<T> {
  promise: Promise<T>;
  resolve(value: T): void;
  reject(reason: unknown): void;
}

export function deferred<T>(): Deferred<T> {
  return Promise.withResolvers<T>();
}

/** Waits `ms` milliseconds; rejects with the signal's reason when it is aborted first. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/**
 * Settles as `promise` does, or rejects with a `timeout` error after `ms` milliseconds.
 * The work itself is not cancelled: the caller decides what a late completion means.
 */
export function withDeadline<T>(promise: Promise<T>, ms: number, what: string): Promise<T> {
  const { promise: expired, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new AenvError('timeout', `${what} did not finish within ${ms} ms`)), ms);
  return Promise.race([promise, expired]).finally(() => clearTimeout(timer));
}

export interface PollOptions {
  /** Milliseconds between two attempts. */
  intervalMs: number;
  /** Milliseconds until the last attempt. */
  timeoutMs: number;
  signal?: AbortSignal;
}

/** Calls `attempt` until it returns something other than undefined; a `timeout` error names `what` afterwards. */
export async function pollUntil<T>(
  what: string,
  attempt: () => Promise<T | undefined> | T | undefined,
  { intervalMs, timeoutMs, signal }: PollOptions,
): Promise<T> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const value = await attempt();
    if (value !== undefined) return value;
    if (performance.now() >= end) throw new AenvError('timeout', `${what} did not happen within ${timeoutMs} ms`);
    await sleep(intervalMs, signal);
  }
}

/** At most `limit` holders at once; the others wait in order. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(limit: number) {
    this.#free = limit;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}

/** Work by key: callers that ask for a key already being worked on share its outcome. */
export class Singleflight<T> {
  readonly #running = new Map<string, Promise<T>>();

  run(key: string, work: () => Promise<T>): Promise<T> {
    const running = this.#running.get(key);
    if (running) return running;
    const started = work().finally(() => this.#running.delete(key));
    this.#running.set(key, started);
    return started;
  }
}

/** Work by key, one at a time and in order of arrival. */
export class KeyedMutex {
  readonly #tails = new Map<string, Promise<unknown>>();

  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key) ?? Promise.resolve();
    const mine = before.then(work, work);
    const tail = mine.catch(() => {});
    this.#tails.set(key, tail);
    void tail.then(() => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    });
    return mine;
  }

  /** True while somebody holds or waits for `key`. */
  isHeld(key: string): boolean {
    return this.#tails.has(key);
  }
}
