/** Sandboxes: runs the lifecycle. Every change of phase is recorded before what it announces is done. */
import { answer, due, type EndCause, isSettled, type Operation, outcome, type SandboxPhase } from '@aenv/lifecycle';
import type { SavedState } from '@aenv/snapshot';
import { AenvError, newLayerId, newSandboxId, newSecret } from '@aenv/std';
import type { Vm, VmEnd } from '@aenv/vmm';
import type { SandboxFilter, SandboxRoute, SandboxSettings, SandboxView } from './engine.ts';
import type { Context } from './options.ts';
import { type SandboxRow, SandboxTable } from './sandbox-table.ts';
import { type Live, type Origin, SandboxWork } from './sandbox-work.ts';
import type { SlotPool } from './slot-pool.ts';
import type { BuildRow, TemplateTable } from './template-table.ts';
import { matches, sandboxRoute, sandboxView } from './views.ts';
import type { WarmPool } from './warm-pool.ts';

/** After a timeout could not be acted on, the time until it is tried again, milliseconds. */
const RETRY_MS = 30_000;

/** A running sandbox with its guest's address. */
export interface RunningGuest {
  id: string;
  address: string;
  token?: string;
}

/** The state of a sandbox that went on. */
export interface Captured {
  build: BuildRow;
  /** Sealed layers over the build's disk, bottom first. */
  layers: string[];
  settings: SandboxSettings;
}

export class Sandboxes {
  readonly #context: Context;
  readonly table: SandboxTable;
  readonly #templates: TemplateTable;
  readonly #work: SandboxWork;
  readonly #pool: WarmPool;
  readonly #live = new Map<string, Live>();

  constructor(context: Context, templates: TemplateTable, slots: SlotPool, pool: WarmPool) {
    this.#context = context;
    this.#pool = pool;
    this.table = new SandboxTable(context.database);
    this.#templates = templates;
    this.#work = new SandboxWork(context, this.table, slots);
  }

  // ---- what there is

  view(id: string): SandboxView {
    return this.#view(this.#visible(id));
  }

  list(filter: SandboxFilter): SandboxView[] {
    const templateId =
      filter.template === undefined
        ? undefined
        : (this.#templates.templateIdByName(filter.template) ?? filter.template);
    return [...this.#live.values()]
      .filter(({ row }) => matches(row, filter, templateId))
      .map((live) => this.#view(live));
  }

  /** Sandboxes that stand on one of `buildIds`. */
  usersOf(buildIds: ReadonlySet<string>): string[] {
    return [...this.#live.values()].filter(({ row }) => buildIds.has(row.buildId)).map(({ row }) => row.id);
  }

  /** How many have a VM, or are about to. */
  get activeCount(): number {
    let count = 0;
    for (const { row } of this.#live.values()) if (row.phase !== 'paused') count += 1;
    return count;
  }

  get pausedCount(): number {
    return this.#live.size - this.activeCount;
  }

  route(id: string): SandboxRoute {
    return sandboxRoute(this.#live.get(id)?.row);
  }

  /** The running sandboxes, for sampling. */
  running(): RunningGuest[] {
    return [...this.#live.values()].flatMap(({ row }) =>
      row.phase === 'running' && row.run
        ? [{ id: row.id, address: row.run.slot.hostAddress, ...(row.token === undefined ? {} : { token: row.token }) }]
        : [],
    );
  }

  /** Run directory of the sandbox's present VM; undefined while it has none. */
  runDirectory(id: string): string | undefined {
    return this.#visible(id).row.run?.vm.directory;
  }

  // ---- operations

  /** A new sandbox from a ready build. */
  create(build: BuildRow, settings: SandboxSettings): Promise<SandboxView> {
    return this.createFrom(this.#origin(build), settings);
  }

  async createFrom(origin: Origin, settings: SandboxSettings, parentId?: string): Promise<SandboxView> {
    this.#checkTimeout(settings.timeoutSeconds);
    this.#checkRoom();
    const { build } = origin;
    const now = this.#context.clock.now();
    const warm = origin.saved ? undefined : this.#pool.claim(build);
    const live: Live = {
      build,
      row: {
        id: warm?.sandboxId ?? newSandboxId(),
        templateId: build.templateId,
        buildId: build.id,
        phase: 'starting',
        startedAt: now,
        endAt: now + settings.timeoutSeconds * 1000,
        settings,
        layers: [...origin.layers, warm?.layer ?? newLayerId()],
        ...(settings.secure ? { token: newSecret() } : {}),
        ...(parentId === undefined ? {} : { parentId }),
      },
    };
    this.#context.layers.hold(live.row.id, live.row.layers);
    await this.#transition(live, 'starting', 'start_failed', () => this.#work.start(live, origin, warm));
    this.#templates.countSpawn(build.templateId, now);
    return this.#view(live);
  }

  async kill(id: string, cause: EndCause = 'killed'): Promise<void> {
    await this.#perform(id, 'kill', (live) =>
      this.#transition(live, 'killing', cause, () => this.#work.tearDown(live)),
    );
  }

  async pause(id: string): Promise<void> {
    await this.#perform(id, 'pause', (live) =>
      this.#transition(live, 'pausing', 'vmm_crash', () => this.#work.save(live)),
    );
  }

  /** Returns whether this call, or one that it joined, resumed the sandbox. */
  async resume(id: string, operation: 'resume' | 'connect', timeoutSeconds: number): Promise<boolean> {
    this.#checkTimeout(timeoutSeconds);
    let resumed = true;
    const joined = await this.#perform(id, operation, (live) => {
      if (live.row.phase !== 'running') return this.#resume(live, timeoutSeconds);
      resumed = false;
      this.#prolong(live, timeoutSeconds);
    });
    if (joined) this.#prolong(this.#visible(id), timeoutSeconds);
    return resumed;
  }

  async #resume(live: Live, timeoutSeconds: number): Promise<void> {
    this.#checkRoom();
    let guestError: unknown;
    await this.#transition(live, 'resuming', 'vmm_crash', async () => {
      guestError = await this.#work.restore(live, timeoutSeconds);
    });
    if (guestError !== undefined) throw guestError;
  }

  /**
   * Saves the state of a running sandbox to `into` and lets it go on. `holder` holds what its disk stands on. Returns what
   * sandboxes with this state start from; the empty layer is the caller's to make.
   */
  async capture(id: string, operation: 'snapshot' | 'fork', holder: string, into: SavedState): Promise<Captured> {
    let captured: Captured | undefined;
    await this.#perform(id, operation, (live) =>
      this.#transition(live, 'capturing', 'vmm_crash', async () => {
        const layers = await this.#work.capture(live, holder, into);
        captured = { build: live.build, layers, settings: live.row.settings };
      }),
    );
    if (!captured) throw new AenvError('internal', `the state of sandbox ${id} was not captured`);
    return captured;
  }

  /** Takes a running sandbox back to the state of `build`, under the same id. */
  async rollback(id: string, build: BuildRow): Promise<void> {
    await this.#perform(id, 'rollback', (live) =>
      this.#transition(live, 'rolling_back', 'vmm_crash', () => this.#work.rollBack(live, this.#origin(build))),
    );
  }

  /** The build that the sandbox stands on. */
  buildOf(id: string): BuildRow {
    return this.#visible(id).build;
  }

  #origin(build: BuildRow): Origin {
    return { build, layers: [], emptyLayer: this.#context.templateStore.files(build.id).emptyLayer };
  }

  async setTimeout(id: string, timeoutSeconds: number): Promise<void> {
    this.#checkTimeout(timeoutSeconds);
    await this.#perform(id, 'set_timeout', (live) =>
      this.#setEnd(live, this.#context.clock.now() + timeoutSeconds * 1000),
    );
  }

  async refresh(id: string, durationSeconds: number): Promise<void> {
    await this.#perform(id, 'refresh', (live) => this.#prolong(live, durationSeconds));
  }

  /** Acts on every timeout that has struck, and on ends that failed; called by a timer. Never rejects. */
  sweep(): void {
    const now = this.#context.clock.now();
    for (const live of this.#live.values()) {
      const { row } = live;
      const action = due({ phase: row.phase, endAt: row.endAt, onTimeout: row.settings.onTimeout }, now);
      if (action === 'kill') void this.kill(row.id, 'timeout').catch((err: unknown) => this.#sweepFailed(live, err));
      if (action === 'pause') void this.pause(row.id).catch((err: unknown) => this.#sweepFailed(live, err));
      if (row.phase === 'killing' && !live.transition && now >= row.endAt)
        void this.kill(row.id).catch((err: unknown) => this.#sweepFailed(live, err));
    }
  }

  #sweepFailed({ row }: Live, err: unknown): void {
    this.#context.logger.error({ err, sandboxId: row.id }, 'the timeout could not be acted on; it is tried again');
    row.endAt = this.#context.clock.now() + RETRY_MS;
  }

  /** Waits for the operations in progress; what they leave running goes on running. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#live.values()].flatMap(({ transition, ending }) => [transition, ending]));
  }

  /** Takes a recorded sandbox back in at the start of the server; with `vm` it runs on, and its guest is greeted anew. */
  readopt(row: SandboxRow, build: BuildRow, vm: Vm | undefined): void {
    const live: Live = { row, build, ...(vm ? { vm } : {}) };
    this.#live.set(row.id, live);
    this.#work.record(live);
    if (!vm || !row.run) return;
    this.#watch(live, vm);
    // The server may have died between the start of the processors and the greeting.
    void this.#work.greet(live, { vm, run: row.run }, 'adopted').catch((err: unknown) => {
      this.#context.logger.warn({ err, sandboxId: row.id }, 'the guest of an adopted sandbox does not answer');
    });
  }

  // ---- the lifecycle

  #visible(id: string): Live {
    const live = this.#live.get(id);
    if (live && live.row.phase !== 'killing') return live;
    const ended = this.table.ended(id);
    const why = ended ? `; it ended at ${new Date(ended.at).toISOString()} (${ended.cause})` : '';
    throw new AenvError('sandbox_not_found', `Sandbox "${id}" doesn't exist or you don't have access to it${why}`);
  }

  /**
   * Waits until `operation` may begin or apply, and runs `act` in the same turn in which that was found: in between,
   * another caller could begin the same. Returns true when an operation of another caller has been joined instead.
   */
  async #perform(id: string, operation: Operation, act: (live: Live) => Promise<void> | void): Promise<boolean> {
    for (;;) {
      const live = operation === 'kill' ? (this.#live.get(id) ?? this.#visible(id)) : this.#visible(id);
      const reply = answer(live.row.phase, operation);
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

  /** Runs `work` in `phase` and moves on to what its outcome leads to. `cause` is remembered when that is the end. */
  #transition(live: Live, phase: SandboxPhase, cause: EndCause, work: () => Promise<void>): Promise<void> {
    this.#enter(live, phase);
    const done = work().then(
      () => this.#settle(live, outcome(phase, true), cause),
      (error: unknown) => this.#failed(live, phase, cause, error),
    );
    live.transition = done;
    done.catch(() => {});
    return done;
  }

  /** An end must be possible also when it cannot be recorded, for instance because the disk is full. */
  #enter(live: Live, phase: SandboxPhase): void {
    const before = live.row.phase;
    live.row.phase = phase;
    if (phase === 'killing') {
      this.#work.record(live);
    } else {
      try {
        this.table.put(live.row);
      } catch (error) {
        live.row.phase = before;
        throw AenvError.from(error);
      }
    }
    this.#live.set(live.row.id, live);
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
      this.#live.delete(row.id);
      this.#forget(row.id, cause);
      return;
    }
    row.phase = next;
    if (next === 'killing') row.endAt = this.#context.clock.now() + RETRY_MS;
    this.#work.record(live);
    if (next === 'running' && live.vm) this.#watch(live, live.vm);
  }

  #forget(id: string, cause: EndCause): void {
    try {
      this.table.end(id, this.#context.clock.now(), cause);
    } catch (err) {
      this.#context.logger.error({ err, sandboxId: id }, 'the end of a sandbox is recorded at the next start');
    }
  }

  #watch(live: Live, vm: Vm): void {
    void vm.ended.then((end) => this.#vmEnded(live, vm, end));
  }

  /** A VM that ends without having been asked to takes its sandbox with it. */
  #vmEnded(live: Live, vm: Vm, end: VmEnd): void {
    if (live.vm !== vm || live.row.phase !== 'running') return;
    const cause: EndCause = end.cause === 'requested' ? 'killed' : end.cause;
    this.#context.logger.warn({ sandboxId: live.row.id, cause, detail: end.detail }, 'a sandbox ended by itself');
    void this.kill(live.row.id, cause).catch((err: unknown) => {
      this.#context.logger.error({ err, sandboxId: live.row.id }, 'a sandbox that ended could not be cleared away');
    });
  }

  #view(live: Live): SandboxView {
    return sandboxView(live.row, live.build, this.#templates.firstName(live.row.templateId));
  }

  #checkTimeout(seconds: number): void {
    const max = this.#context.limits.maxTimeoutSeconds;
    if (seconds <= max) return;
    throw new AenvError('bad_request', `Timeout cannot be greater than ${max} seconds (asked for ${seconds})`, {
      remedy: 'Ask for less, or raise sandbox.max_timeout in the configuration.',
    });
  }

  #checkRoom(): void {
    const max = this.#context.limits.maxRunning;
    if (this.activeCount < max) return;
    throw new AenvError('capacity_exhausted', `${max} sandboxes are running, which is the configured maximum`, {
      remedy: 'Pause or delete one, or raise sandbox.max_running in the configuration.',
    });
  }

  #setEnd(live: Live, endAt: number): void {
    live.row.endAt = endAt;
    this.table.put(live.row);
  }

  #prolong(live: Live, seconds: number): void {
    const endAt = this.#context.clock.now() + seconds * 1000;
    if (isSettled(live.row.phase) && endAt > live.row.endAt) this.#setEnd(live, endAt);
  }
}
