/** Runs the lifecycle: every change of phase is recorded before what it announces is done, and after it has been. */
import { answer, type EndCause, outcome, type SandboxPhase, type Operation as Verb } from '@aenv/lifecycle';
import { AenvError } from '@aenv/std';
import type { Vm, VmEnd } from '@aenv/vmm';
import type { OperationKind } from './engine.ts';
import type { Operation } from './ledger.ts';
import type { Context } from './options.ts';
import type { SandboxTable } from './sandbox-table.ts';
import type { Live, SandboxWork } from './sandbox-work.ts';

/** After something could not be done that has to be, the time until it is tried again, milliseconds. */
export const RETRY_MS = 30_000;

export interface Transition {
  phase: SandboxPhase;
  kind: OperationKind;
  /** Remembered when the transition ends the sandbox. */
  cause: EndCause;
  /** The operation that it is a part of; absent when it is one by itself. */
  within?: Operation;
}

export class LifecycleRunner {
  readonly #context: Context;
  readonly #table: SandboxTable;
  readonly #work: SandboxWork;
  /** Every sandbox that has a record. */
  readonly live = new Map<string, Live>();

  constructor(context: Context, table: SandboxTable, work: SandboxWork) {
    this.#context = context;
    this.#table = table;
    this.#work = work;
  }

  /** The sandbox, unless it is gone or on its way there; the error says when and why. */
  visible(id: string): Live {
    const live = this.live.get(id);
    if (live && live.row.phase !== 'killing') return live;
    const ended = this.#table.ended(id);
    const why = ended ? `; it ended at ${new Date(ended.at).toISOString()} (${ended.cause})` : '';
    throw new AenvError('sandbox_not_found', `Sandbox "${id}" doesn't exist or you don't have access to it${why}`);
  }

  /**
   * Waits until `verb` may begin or apply, and runs `act` in the same turn in which that was found: in between, another
   * caller could begin the same. Returns true when an operation of another caller has been joined instead.
   */
  async perform(id: string, verb: Verb, act: (live: Live) => Promise<void> | void): Promise<boolean> {
    for (;;) {
      const live = verb === 'kill' ? (this.live.get(id) ?? this.visible(id)) : this.visible(id);
      const reply = answer(live.row.phase, verb);
      if (reply.kind === 'refuse') throw new AenvError(reply.code, `sandbox ${id}: ${reply.message}`);
      if (reply.kind === 'join' && live.transition) {
        await live.transition;
        return true;
      }
      if (reply.kind !== 'wait') {
        // Nothing to join is an end that failed: it is tried again.
        await act(live);
        return false;
      }
      await live.transition?.catch(() => {});
    }
  }

  /** Runs `work` in a phase and moves on to what its outcome leads to. */
  transition(live: Live, { phase, kind, cause, within }: Transition, work: () => Promise<void>): Promise<void> {
    this.#enter(live, phase);
    const run = (operation: Operation) => {
      operation.enter(phase);
      return work().then(
        () => this.#settle(live, outcome(phase, true), cause),
        (error: unknown) => this.#failed(live, phase, cause, error),
      );
    };
    const done = within ? run(within) : this.#context.ledger.run({ kind, sandboxId: live.row.id }, run);
    live.transition = done;
    done.catch(() => {});
    return done;
  }

  /** A VM that ends without having been asked to takes its sandbox with it. */
  watch(live: Live, vm: Vm): void {
    void vm.ended.then((end) => this.#vmEnded(live, vm, end));
  }

  async kill(id: string, cause: EndCause): Promise<void> {
    await this.perform(id, 'kill', (live) =>
      this.transition(live, { phase: 'killing', kind: 'kill', cause }, () => this.#work.tearDown(live)),
    );
  }

  /** An end must be possible also when it cannot be recorded, for instance because the disk is full. */
  #enter(live: Live, phase: SandboxPhase): void {
    const before = live.row.phase;
    live.row.phase = phase;
    if (phase === 'killing') {
      this.#work.record(live);
    } else {
      try {
        this.#table.put(live.row);
      } catch (error) {
        live.row.phase = before;
        throw AenvError.from(error);
      }
    }
    this.live.set(live.row.id, live);
  }

  async #failed(live: Live, phase: SandboxPhase, cause: EndCause, error: unknown): Promise<never> {
    // A failure leaves a sandbox that runs, unless its VM is what failed.
    const vmLost = (phase === 'pausing' || phase === 'capturing') && live.vm === undefined;
    const next = vmLost ? 'gone' : outcome(phase, false);
    if (next === 'gone') await this.#endOf(live, cause);
    else this.#settle(live, next, cause);
    throw error;
  }

  /** The end of a sandbox whose operation failed; what cannot be removed now stays `killing` and is tried again. */
  async #endOf(live: Live, cause: EndCause): Promise<void> {
    try {
      await this.#work.tearDown(live);
      this.#settle(live, 'gone', cause);
    } catch (err) {
      this.#context.logger.error({ err, sandboxId: live.row.id }, 'what a failed sandbox left could not be removed');
      this.#settle(live, 'killing', cause);
    }
  }

  #settle(live: Live, next: SandboxPhase | 'gone', cause: EndCause): void {
    live.transition = undefined;
    const { row } = live;
    if (next === 'gone') {
      this.live.delete(row.id);
      this.#forget(live, cause);
      return;
    }
    row.phase = next;
    if (next === 'killing') row.endAt = this.#context.clock.now() + RETRY_MS;
    this.#work.record(live);
    if (next === 'running' && live.vm) this.watch(live, live.vm);
  }

  #forget({ row }: Live, cause: EndCause): void {
    try {
      this.#table.end(row.id, this.#context.clock.now(), cause);
    } catch (err) {
      this.#context.logger.error({ err, sandboxId: row.id }, 'the end of a sandbox is recorded at the next start');
    }
  }

  #vmEnded(live: Live, vm: Vm, end: VmEnd): void {
    if (live.vm !== vm || live.row.phase !== 'running') return;
    const cause: EndCause = end.cause === 'requested' ? 'killed' : end.cause;
    this.#context.logger.warn({ sandboxId: live.row.id, cause, detail: end.detail }, 'a sandbox ended by itself');
    void this.kill(live.row.id, cause).catch((err: unknown) => {
      this.#context.logger.error({ err, sandboxId: live.row.id }, 'a sandbox that ended could not be cleared away');
    });
  }
}
