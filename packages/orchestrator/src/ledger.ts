/**
 * The ledger of long operations: what is under way, in which phase, until when, and how each one ended. It is an account,
 * not a lock: a failure to write it down never stops the operation.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { AenvError, type Clock, type ErrorJson, type Logger, newOperationId } from '@aenv/std';
import type { OperationFilter, OperationKind, OperationState, OperationView } from './engine.ts';

/**
 * Seconds until an operation of the kind has ended at the latest. Every step of one has a limit of its own, and these are
 * larger than the sum; one that is overdue is a bug, and shows.
 */
const LIMIT_S: Record<OperationKind, number> = {
  start: 180,
  resume: 180,
  pause: 180,
  snapshot: 300,
  fork: 3600,
  rollback: 300,
  kill: 120,
  build: 6 * 3600,
};
/** How many ended operations are remembered. */
const KEPT = 1_000;

export interface OperationSpec {
  kind: OperationKind;
  sandboxId?: string;
  buildId?: string;
}

/** One operation in progress. */
export interface Operation {
  /** Notes the phase that it is in now. */
  enter(phase: string): void;
}

interface RawOperation {
  id: string;
  kind: OperationKind;
  sandbox_id: string | null;
  build_id: string | null;
  generation: number;
  phase: string;
  state: OperationState;
  started_at: number;
  deadline_at: number;
  ended_at: number | null;
  error_json: string | null;
}

export class Ledger {
  readonly #database: DatabaseSync;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #put: StatementSync;
  readonly #trim: StatementSync;
  /** The last generation of a sandbox or build. */
  readonly #last: StatementSync;
  readonly #running = new Map<string, OperationView>();

  constructor({ database, clock, logger }: { database: DatabaseSync; clock: Clock; logger: Logger }) {
    this.#database = database;
    this.#clock = clock;
    this.#logger = logger;
    this.#put = database.prepare(
      `INSERT INTO operations (id, kind, sandbox_id, build_id, generation, phase, state, started_at, deadline_at)
           VALUES (:id, :kind, :sandbox, :build, :generation, :phase, :state, :started, :deadline)
           ON CONFLICT (id) DO UPDATE SET phase = :phase, state = :state, ended_at = :ended, error_json = :error`,
    );
    this.#trim = database.prepare(
      'DELETE FROM operations WHERE ended_at NOT NULL AND rowid <= (SELECT max(rowid) FROM operations) - ?',
    );
    this.#last = database.prepare(
      'SELECT max(generation) AS last FROM operations WHERE sandbox_id IS ?1 AND (?1 NOT NULL OR build_id IS ?2)',
    );
  }

  /** Does `work` as an operation that ends as the work does. */
  async run<T>(spec: OperationSpec, work: (operation: Operation) => Promise<T>): Promise<T> {
    const view = this.#begin(spec);
    const enter = (phase: string) => {
      view.phase = phase;
      this.#write(view);
    };
    try {
      const result = await work({ enter });
      this.#end(view, 'succeeded');
      return result;
    } catch (reason) {
      this.#end(view, 'failed', AenvError.from(reason).toJSON());
      throw reason;
    }
  }

  /** Newest first. */
  list({ sandboxId, states }: OperationFilter): OperationView[] {
    const rows = this.#database.prepare('SELECT * FROM operations ORDER BY started_at DESC, rowid DESC').all();
    return (rows as unknown as RawOperation[])
      .map((raw) => this.#running.get(raw.id) ?? fromRaw(raw))
      .filter((view) => sandboxId === undefined || view.sandboxId === sandboxId)
      .filter((view) => states === undefined || states.includes(view.state))
      .map((view) => ({ ...view }));
  }

  /** At the start of the server: what an earlier one did not end has been undone or finished by the recovery. */
  interruptAll(): void {
    const error = new AenvError('shutting_down', 'the server ended during the operation').toJSON();
    this.#database
      .prepare(`UPDATE operations SET state = 'interrupted', ended_at = ?, error_json = ? WHERE state = 'running'`)
      .run(this.#clock.now(), JSON.stringify(error));
  }

  #begin(spec: OperationSpec): OperationView {
    const now = this.#clock.now();
    const view: OperationView = {
      ...spec,
      id: newOperationId(),
      generation: this.#nextGeneration(spec),
      phase: 'waiting',
      state: 'running',
      startedAt: now,
      deadlineAt: now + LIMIT_S[spec.kind] * 1000,
    };
    this.#running.set(view.id, view);
    this.#write(view);
    return view;
  }

  #end(view: OperationView, state: OperationState, error?: ErrorJson): void {
    Object.assign(view, { state, endedAt: this.#clock.now(), ...(error ? { error } : {}) });
    this.#write(view);
    this.#running.delete(view.id);
  }

  /** How many operations the sandbox or build has had, this one included. */
  #nextGeneration({ sandboxId, buildId }: OperationSpec): number {
    return this.#safely(0, () => {
      const row = this.#last.get(sandboxId ?? null, buildId ?? null);
      return ((row?.last as number | null) ?? 0) + 1;
    });
  }

  #write(view: OperationView): void {
    this.#safely(undefined, () => {
      this.#put.run({
        id: view.id,
        kind: view.kind,
        sandbox: view.sandboxId ?? null,
        build: view.buildId ?? null,
        generation: view.generation,
        phase: view.phase,
        state: view.state,
        started: view.startedAt,
        deadline: view.deadlineAt,
        ended: view.endedAt ?? null,
        error: view.error ? JSON.stringify(view.error) : null,
      });
      if (view.endedAt !== undefined) this.#trim.run(KEPT);
    });
  }

  #safely<T>(fallback: T, write: () => T): T {
    try {
      return write();
    } catch (err) {
      this.#logger.warn({ err }, 'the ledger of operations could not be written');
      return fallback;
    }
  }
}

function fromRaw(raw: RawOperation): OperationView {
  return {
    id: raw.id,
    kind: raw.kind,
    ...(raw.sandbox_id === null ? {} : { sandboxId: raw.sandbox_id }),
    ...(raw.build_id === null ? {} : { buildId: raw.build_id }),
    generation: raw.generation,
    phase: raw.phase,
    state: raw.state,
    startedAt: raw.started_at,
    deadlineAt: raw.deadline_at,
    ...(raw.ended_at === null ? {} : { endedAt: raw.ended_at }),
    ...(raw.error_json === null ? {} : { error: JSON.parse(raw.error_json) as ErrorJson }),
  };
}
