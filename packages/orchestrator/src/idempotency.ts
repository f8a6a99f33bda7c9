/** Creates that may be asked for again: the same key and the same request name the same sandbox. */
import type { DatabaseSync } from 'node:sqlite';
import { AenvError, type Clock } from '@aenv/std';
import type { OnceKey } from './engine.ts';

/** A key is forgotten after this time, milliseconds. */
const KEPT_MS = 24 * 3_600_000;

export class Idempotency {
  readonly #database: DatabaseSync;
  readonly #clock: Clock;
  /** Requests in progress by key, until the sandbox that they make has an id. */
  readonly #running = new Map<string, { digest: string; done: Promise<unknown> }>();

  constructor({ database, clock }: { database: DatabaseSync; clock: Clock }) {
    this.#database = database;
    this.#clock = clock;
  }

  /**
   * The result of `create` for the first request with the key, and of `again` for the sandbox of an earlier one. `promised`
   * tells whether a sandbox was ever promised: a start that failed leaves the key free. `conflict` when the key came with
   * another request.
   */
  async run<T>(
    { key, digest }: OnceKey,
    {
      create,
      again,
      promised,
    }: {
      create: () => Promise<T>;
      again: (sandboxId: string) => Promise<T>;
      promised: (sandboxId: string) => boolean;
    },
  ): Promise<T> {
    const running = this.#running.get(key);
    if (running) {
      requireSame(key, running.digest, digest);
      await running.done.catch(() => {});
      return this.run({ key, digest }, { create, again, promised });
    }
    const known = this.#find(key);
    if (known && promised(known.sandboxId)) {
      requireSame(key, known.digest, digest);
      return again(known.sandboxId);
    }
    const done = create();
    this.#running.set(key, { digest, done });
    try {
      return await done;
    } finally {
      this.#running.delete(key);
    }
  }

  /** Binds a key to the sandbox that is about to be made for it. */
  bind({ key, digest }: OnceKey, sandboxId: string): void {
    const now = this.#clock.now();
    this.#database.prepare('DELETE FROM idempotency_keys WHERE at < ?').run(now - KEPT_MS);
    this.#database
      .prepare('INSERT OR REPLACE INTO idempotency_keys (key, digest, sandbox_id, at) VALUES (?, ?, ?, ?)')
      .run(key, digest, sandboxId, now);
  }

  #find(key: string): { digest: string; sandboxId: string } | undefined {
    const row = this.#database
      .prepare('SELECT digest, sandbox_id FROM idempotency_keys WHERE key = ? AND at >= ?')
      .get(key, this.#clock.now() - KEPT_MS);
    return row && { digest: row.digest as string, sandboxId: row.sandbox_id as string };
  }
}

function requireSame(key: string, known: string, digest: string): void {
  if (known === digest) return;
  throw new AenvError('conflict', `the idempotency key '${key}' came with another request before`, {
    remedy: 'Use a new key for each sandbox.',
  });
}
