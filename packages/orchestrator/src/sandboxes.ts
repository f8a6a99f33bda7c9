/** Sandboxes: what there is, and the operations on them. */
import { due, type EndCause, isSettled } from '@aenv/lifecycle';
import type { SavedState } from '@aenv/snapshot';
import { AenvError, newLayerId, newSandboxId, newSecret } from '@aenv/std';
import type { Vm } from '@aenv/vmm';
import { Admission, type Load } from './admission.ts';
import type { OnceKey, SandboxFilter, SandboxRoute, SandboxSettings, SandboxView } from './engine.ts';
import { Idempotency } from './idempotency.ts';
import type { Operation } from './ledger.ts';
import { LifecycleRunner, RETRY_MS, type Transition } from './lifecycle-runner.ts';
import type { Context } from './options.ts';
import { type SandboxRow, SandboxTable } from './sandbox-table.ts';
import { type Live, type Origin, SandboxWork } from './sandbox-work.ts';
import type { SlotPool } from './slot-pool.ts';
import type { BuildRow, TemplateTable } from './template-table.ts';
import { matches, sandboxRoute, sandboxView } from './views.ts';
import type { WarmPool } from './warm-pool.ts';

const START: Transition = { phase: 'starting', kind: 'start', cause: 'start_failed' };
const PAUSE: Transition = { phase: 'pausing', kind: 'pause', cause: 'vmm_crash' };
const RESUME: Transition = { phase: 'resuming', kind: 'resume', cause: 'vmm_crash' };
const ROLLBACK: Transition = { phase: 'rolling_back', kind: 'rollback', cause: 'vmm_crash' };

/** A running sandbox with its guest's address. */
export interface RunningGuest {
  id: string;
  address: string;
  token?: string;
}

export interface ResumeOptions {
  timeoutSeconds: number;
  /** False: boots from its disk, even when the memory was kept. */
  memory: boolean;
}

/** The state of a sandbox that went on. */
export interface Captured {
  build: BuildRow;
  /** Sealed layers over the template's disk, bottom first. */
  layers: string[];
  /** The file that its changed memory belongs to; absent when only the disk was kept. */
  memoryBase?: string;
  settings: SandboxSettings;
}

export class Sandboxes {
  readonly #context: Context;
  readonly table: SandboxTable;
  readonly admission: Admission;
  readonly #templates: TemplateTable;
  readonly #work: SandboxWork;
  readonly #pool: WarmPool;
  readonly #once: Idempotency;
  readonly #lifecycle: LifecycleRunner;

  constructor(context: Context, templates: TemplateTable, slots: SlotPool, pool: WarmPool) {
    this.#context = context;
    this.#pool = pool;
    this.#once = new Idempotency(context);
    this.admission = new Admission(context, () => this.#load());
    this.table = new SandboxTable(context.database);
    this.#templates = templates;
    this.#work = new SandboxWork(context, this.table, slots);
    this.#lifecycle = new LifecycleRunner(context, this.table, this.#work);
  }

  // ---- what there is

  view(id: string): SandboxView {
    return this.#view(this.#lifecycle.visible(id));
  }

  list(filter: SandboxFilter): SandboxView[] {
    const templateId =
      filter.template === undefined
        ? undefined
        : (this.#templates.templateIdByName(filter.template) ?? filter.template);
    return [...this.#lifecycle.live.values()]
      .filter(({ row }) => matches(row, filter, templateId))
      .map((live) => this.#view(live));
  }

  /** Sandboxes that stand on one of `buildIds`. */
  usersOf(buildIds: ReadonlySet<string>): string[] {
    return [...this.#lifecycle.live.values()].filter(({ row }) => buildIds.has(row.buildId)).map(({ row }) => row.id);
  }

  ids(): string[] {
    return [...this.#lifecycle.live.keys()];
  }

  rows(): SandboxRow[] {
    return [...this.#lifecycle.live.values()].map(({ row }) => row);
  }

  /** Network slots in use. */
  slots(): number[] {
    return this.rows().flatMap(({ run }) => (run ? [run.slot.index] : []));
  }

  /** How many have a VM, or are about to. */
  get activeCount(): number {
    return this.#load().running;
  }

  #load(): Load {
    const load = { running: 0, promisedMb: 0 };
    for (const { row, build } of this.#lifecycle.live.values()) {
      if (row.phase === 'paused') continue;
      load.running += 1;
      load.promisedMb += build.memoryMb;
    }
    return load;
  }

  get pausedCount(): number {
    return this.#lifecycle.live.size - this.activeCount;
  }

  route(id: string): SandboxRoute {
    return sandboxRoute(this.#lifecycle.live.get(id)?.row);
  }

  /** The running sandboxes, for sampling. */
  running(): RunningGuest[] {
    return [...this.#lifecycle.live.values()].flatMap(({ row }) =>
      row.phase === 'running' && row.run
        ? [{ id: row.id, address: row.run.slot.hostAddress, ...(row.token === undefined ? {} : { token: row.token }) }]
        : [],
    );
  }

  /** Run directory of the sandbox's present VM; undefined while it has none. */
  runDirectory(id: string): string | undefined {
    return this.#lifecycle.visible(id).row.run?.vm.directory;
  }

  // ---- operations

  /** A new sandbox from a ready build; with `once`, the one that an earlier request with the key has made. */
  create(build: BuildRow, settings: SandboxSettings, once?: OnceKey): Promise<SandboxView> {
    const create = () => this.createFrom(this.#origin(build), settings, once ? { once } : {});
    if (!once) return create();
    return this.#once.run(once, {
      create,
      again: async (id) => this.view(id),
      promised: (id) => this.#lifecycle.live.has(id) || this.table.ended(id)?.cause !== 'start_failed',
    });
  }

  /** A new sandbox from `origin`, when there is room for it. */
  async createFrom(
    origin: Origin,
    settings: SandboxSettings,
    of: { parentId?: string; once?: OnceKey },
  ): Promise<SandboxView> {
    this.#checkTimeout(settings.timeoutSeconds);
    return this.admission.run(origin.build.memoryMb, () => this.#start(origin, settings, of));
  }

  async #start(
    origin: Origin,
    settings: SandboxSettings,
    { parentId, once }: { parentId?: string; once?: OnceKey },
  ): Promise<SandboxView> {
    const { build } = origin;
    const now = this.#context.clock.now();
    const warm = origin.state ? undefined : this.#pool.claim(build);
    const live: Live = {
      build,
      row: {
        id: warm?.sandboxId ?? newSandboxId(),
        templateId: build.templateId,
        buildId: build.id,
        originId: build.id,
        phase: 'starting',
        startedAt: now,
        endAt: now + settings.timeoutSeconds * 1000,
        settings,
        layers: [...origin.layers, warm?.layer ?? newLayerId()],
        ...(settings.secure ? { token: newSecret() } : {}),
        ...(parentId === undefined ? {} : { parentId }),
      },
    };
    if (once) this.#once.bind(once, live.row.id);
    this.#context.layers.hold(live.row.id, live.row.layers);
    await this.#lifecycle.transition(live, START, () => this.#work.start(live, origin, warm));
    this.#templates.countSpawn(build.templateId, now);
    return this.#view(live);
  }

  async kill(id: string, cause: EndCause = 'killed'): Promise<void> {
    await this.#lifecycle.kill(id, cause);
  }

  async pause(id: string, withMemory: boolean): Promise<void> {
    await this.#lifecycle.perform(id, 'pause', (live) =>
      this.#lifecycle.transition(live, PAUSE, () => this.#work.save(live, withMemory)),
    );
  }

  /** Returns whether this call, or one that it joined, resumed the sandbox. */
  async resume(
    id: string,
    operation: 'resume' | 'connect',
    { timeoutSeconds, memory }: ResumeOptions,
  ): Promise<boolean> {
    this.#checkTimeout(timeoutSeconds);
    const { row, build } = this.#lifecycle.visible(id);
    const connect = () => this.#connect(id, operation, { timeoutSeconds, memory });
    return row.phase === 'paused' ? this.admission.run(build.memoryMb, connect) : connect();
  }

  async #connect(
    id: string,
    operation: 'resume' | 'connect',
    { timeoutSeconds, memory }: ResumeOptions,
  ): Promise<boolean> {
    let resumed = true;
    const joined = await this.#lifecycle.perform(id, operation, (live) => {
      if (live.row.phase !== 'running') return this.#resume(live, timeoutSeconds, memory);
      resumed = false;
      this.#prolong(live, timeoutSeconds);
    });
    if (joined) this.#prolong(this.#lifecycle.visible(id), timeoutSeconds);
    return resumed;
  }

  async #resume(live: Live, timeoutSeconds: number, withMemory: boolean): Promise<void> {
    this.admission.check(live.build.memoryMb);
    let guestError: unknown;
    await this.#lifecycle.transition(live, RESUME, async () => {
      guestError = await this.#work.restore(live, timeoutSeconds, withMemory);
    });
    if (guestError !== undefined) throw guestError;
  }

  /**
   * Saves the state of a running sandbox to `into`, or its disk alone, and lets it go on. `holder` holds what its disk stands on. Returns what
   * sandboxes with this state start from; the empty layer is the caller's to make.
   */
  async capture(
    id: string,
    kind: 'snapshot' | 'fork',
    within: Operation,
    { holder, into }: { holder: string; into?: SavedState },
  ): Promise<Captured> {
    let captured: Captured | undefined;
    await this.#lifecycle.perform(id, kind, (live) =>
      this.#lifecycle.transition(live, { phase: 'capturing', kind, cause: 'vmm_crash', within }, async () => {
        const layers = await this.#work.capture(live, kind, holder, into);
        const memoryBase = into && live.row.run?.vm.memoryFile;
        const { build, row } = live;
        captured = { build, layers, settings: row.settings, ...(memoryBase === undefined ? {} : { memoryBase }) };
      }),
    );
    if (!captured) throw new AenvError('internal', `the state of sandbox ${id} was not captured`);
    return captured;
  }

  /** Takes a running sandbox back to the state of `build`, under the same id. */
  async rollback(id: string, build: BuildRow): Promise<void> {
    await this.#lifecycle.perform(id, 'rollback', (live) =>
      this.#lifecycle.transition(live, ROLLBACK, () => this.#work.rollBack(live, this.#origin(build))),
    );
  }

  /** The build that the sandbox stands on. */
  buildOf(id: string): BuildRow {
    return this.#lifecycle.visible(id).build;
  }

  #origin(build: BuildRow): Origin {
    return {
      build,
      layers: this.#context.layers.of(build.id),
      emptyLayer: this.#context.templateStore.files(build.id).emptyLayer,
    };
  }

  async setTimeout(id: string, timeoutSeconds: number): Promise<void> {
    this.#checkTimeout(timeoutSeconds);
    await this.#lifecycle.perform(id, 'set_timeout', (live) =>
      this.#setEnd(live, this.#context.clock.now() + timeoutSeconds * 1000),
    );
  }

  async refresh(id: string, durationSeconds: number): Promise<void> {
    await this.#lifecycle.perform(id, 'refresh', (live) => this.#prolong(live, durationSeconds));
  }

  /** Acts on every timeout that has struck, and on ends that failed; called by a timer. Never rejects. */
  sweep(): void {
    const now = this.#context.clock.now();
    for (const live of this.#lifecycle.live.values()) {
      const { row } = live;
      const action = due({ phase: row.phase, endAt: row.endAt, onTimeout: row.settings.onTimeout }, now);
      if (action === 'kill') void this.kill(row.id, 'timeout').catch((err: unknown) => this.#sweepFailed(live, err));
      if (action === 'pause')
        void this.pause(row.id, row.settings.pauseMemory).catch((err: unknown) => this.#sweepFailed(live, err));
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
    await Promise.allSettled(
      [...this.#lifecycle.live.values()].flatMap(({ transition, ending }) => [transition, ending]),
    );
  }

  /** Takes a recorded sandbox back in at the start of the server; with `vm` it runs on, and its guest is greeted anew. */
  readopt(row: SandboxRow, build: BuildRow, vm: Vm | undefined): void {
    const live: Live = { row, build, ...(vm ? { vm } : {}) };
    this.#lifecycle.live.set(row.id, live);
    this.#work.record(live);
    if (!vm || !row.run) return;
    this.#lifecycle.watch(live, vm);
    // The server may have died between the start of the processors and the greeting.
    void this.#work.greet(live, row.run, vm, 'adopted').catch((err: unknown) => {
      this.#context.logger.warn({ err, sandboxId: row.id }, 'the guest of an adopted sandbox does not answer');
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

  #setEnd(live: Live, endAt: number): void {
    live.row.endAt = endAt;
    this.table.put(live.row);
  }

  #prolong(live: Live, seconds: number): void {
    const endAt = this.#context.clock.now() + seconds * 1000;
    if (isSettled(live.row.phase) && endAt > live.row.endAt) this.#setEnd(live, endAt);
  }
}
