/** Sandboxes: runs the lifecycle. Every change of phase is recorded before what it announces is done. */
import { answer, due, type EndCause, isSettled, type Operation, outcome, type SandboxPhase } from '@aenv/lifecycle';
import { AenvError, newSandboxId, newSecret } from '@aenv/std';
import type { Vm, VmEnd } from '@aenv/vmm';
import type { LogLevel, SandboxFilter, SandboxRoute, SandboxSettings, SandboxView } from './engine.ts';
import { dismantle, introduce, type Launched, launch } from './launch.ts';
import type { Context } from './options.ts';
import { type SandboxRow, SandboxTable } from './sandbox-table.ts';
import type { SlotPool } from './slot-pool.ts';
import type { BuildRow, GuestSettings, TemplateTable } from './template-table.ts';
import { matches, sandboxView } from './views.ts';

/** A record with what is under way and what runs. */
interface Live {
  row: SandboxRow;
  build: BuildRow;
  vm?: Vm;
  /** Settles as the operation in progress does. */
  transition?: Promise<void>;
}

/** After an automatic pause has failed, the time until it is tried again, milliseconds. */
const PAUSE_RETRY_MS = 30_000;

export class Sandboxes {
  readonly #context: Context;
  readonly table: SandboxTable;
  readonly #templates: TemplateTable;
  readonly #slots: SlotPool;
  readonly #live = new Map<string, Live>();

  constructor(context: Context, templates: TemplateTable, slots: SlotPool) {
    this.#context = context;
    this.table = new SandboxTable(context.database);
    this.#templates = templates;
    this.#slots = slots;
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
    const live = this.#live.get(id);
    if (!live) return { kind: 'unknown' };
    const { phase, run, settings, token } = live.row;
    if (phase === 'running' && run)
      return { kind: 'running', address: run.slot.hostAddress, secure: token !== undefined };
    if (phase === 'paused' || phase === 'pausing' || phase === 'resuming') {
      return {
        kind: 'paused',
        autoResume: settings.autoResume,
        ...(token === undefined ? {} : { envdAccessToken: token }),
      };
    }
    return { kind: 'unknown' };
  }

  /** The running sandboxes with their guests' addresses, for sampling. */
  running(): { id: string; address: string; token?: string }[] {
    return [...this.#live.values()].flatMap(({ row }) =>
      row.phase === 'running' && row.run
        ? [{ id: row.id, address: row.run.slot.hostAddress, ...(row.token === undefined ? {} : { token: row.token }) }]
        : [],
    );
  }

  /** The file that takes the console of the sandbox's present VM. */
  runDirectory(id: string): string | undefined {
    return this.#visible(id).row.run?.vm.directory;
  }

  // ---- operations

  async create(build: BuildRow, settings: SandboxSettings): Promise<SandboxView> {
    this.#checkTimeout(settings.timeoutSeconds);
    this.#checkRoom();
    const now = this.#context.clock.now();
    const live: Live = {
      build,
      row: {
        id: newSandboxId(),
        templateId: build.templateId,
        buildId: build.id,
        phase: 'starting',
        startedAt: now,
        endAt: now + settings.timeoutSeconds * 1000,
        settings,
        ...(settings.secure ? { token: newSecret() } : {}),
      },
    };
    this.#live.set(live.row.id, live);
    await this.#transition(live, 'starting', 'start_failed', () => this.#start(live));
    this.#templates.countSpawn(build.templateId, now);
    this.#note(live, 'info', 'started');
    return this.#view(live);
  }

  async kill(id: string, cause: EndCause = 'killed'): Promise<void> {
    const live = await this.#reach(id, 'kill');
    if (!live) return;
    await this.#transition(live, 'killing', cause, () => this.#tearDown(live));
  }

  async pause(id: string): Promise<void> {
    const live = await this.#reach(id, 'pause');
    if (!live) return;
    await this.#transition(live, 'pausing', 'vmm_crash', () => this.#save(live));
  }

  /** Returns whether this call, or one that it joined, resumed the sandbox. */
  async resume(id: string, operation: 'resume' | 'connect', timeoutSeconds: number): Promise<boolean> {
    this.#checkTimeout(timeoutSeconds);
    const live = await this.#reach(id, operation);
    if (!live) {
      this.#prolong(this.#visible(id), timeoutSeconds);
      return true;
    }
    if (live.row.phase === 'running') {
      this.#prolong(live, timeoutSeconds);
      return false;
    }
    this.#checkRoom();
    let guestError: unknown;
    await this.#transition(live, 'resuming', 'vmm_crash', async () => {
      guestError = await this.#restore(live, timeoutSeconds);
    });
    if (guestError !== undefined) throw guestError;
    return true;
  }

  async setTimeout(id: string, timeoutSeconds: number): Promise<void> {
    this.#checkTimeout(timeoutSeconds);
    const live = await this.#reach(id, 'set_timeout');
    if (live) this.#setEnd(live, this.#context.clock.now() + timeoutSeconds * 1000);
  }

  async refresh(id: string, durationSeconds: number): Promise<void> {
    const live = await this.#reach(id, 'refresh');
    if (live) this.#prolong(live, durationSeconds);
  }

  /** Acts on every timeout that has struck; called by a timer. Never rejects. */
  sweep(): void {
    const now = this.#context.clock.now();
    for (const { row } of this.#live.values()) {
      const action = due({ phase: row.phase, endAt: row.endAt, onTimeout: row.settings.onTimeout }, now);
      if (action === 'kill') void this.kill(row.id, 'timeout').catch((err: unknown) => this.#sweepFailed(row, err));
      if (action === 'pause') void this.pause(row.id).catch((err: unknown) => this.#sweepFailed(row, err));
    }
  }

  #sweepFailed(row: SandboxRow, err: unknown): void {
    this.#context.logger.error({ err, sandboxId: row.id }, 'the timeout could not be acted on');
    const live = this.#live.get(row.id);
    if (live) this.#setEnd(live, this.#context.clock.now() + PAUSE_RETRY_MS);
  }

  // ---- recovery, see recovery.ts

  /** Takes a recorded sandbox back in; `launched` when its VM runs. */
  readopt(row: SandboxRow, build: BuildRow, vm: Vm | undefined): void {
    const live: Live = { row, build };
    this.#live.set(row.id, live);
    if (vm) this.#watch(live, vm);
    this.table.put(row);
  }

  // ---- the lifecycle

  #visible(id: string): Live {
    const live = this.#live.get(id);
    if (live && live.row.phase !== 'killing') return live;
    const ended = this.table.ended(id);
    const why = ended ? `; it ended at ${new Date(ended.at).toISOString()} (${ended.cause})` : '';
    throw new AenvError('sandbox_not_found', `Sandbox "${id}" doesn't exist or you don't have access to it${why}`);
  }

  /** Waits until `operation` may begin or apply, and returns the sandbox; undefined when a joined one has done it. */
  async #reach(id: string, operation: Operation): Promise<Live | undefined> {
    for (;;) {
      const live = operation === 'kill' ? (this.#live.get(id) ?? this.#visible(id)) : this.#visible(id);
      const reply = answer(live.row.phase, operation);
      switch (reply.kind) {
        case 'begin':
        case 'apply':
          return live;
        case 'refuse':
          throw new AenvError(reply.code, `sandbox ${id}: ${reply.message}`);
        case 'join':
          await live.transition;
          return undefined;
        case 'wait':
          await live.transition?.catch(() => {});
      }
    }
  }

  /** Runs `work` in `phase` and moves on to what its outcome leads to. `cause` is remembered when that is the end. */
  #transition(live: Live, phase: SandboxPhase, cause: EndCause, work: () => Promise<void>): Promise<void> {
    live.row.phase = phase;
    this.table.put(live.row);
    const done = work().then(
      () => this.#settle(live, outcome(phase, true), cause),
      (error: unknown) => {
        // A failed pause leaves a sandbox that runs, unless its VM is what failed.
        const vmLost = phase === 'pausing' && live.vm === undefined;
        this.#settle(live, vmLost ? 'gone' : outcome(phase, false), cause);
        throw error;
      },
    );
    live.transition = done;
    done.catch(() => {});
    return done;
  }

  #settle(live: Live, next: SandboxPhase | 'gone', cause: EndCause): void {
    live.transition = undefined;
    if (next === 'gone') {
      this.#live.delete(live.row.id);
      this.table.end(live.row.id, this.#context.clock.now(), cause);
      return;
    }
    live.row.phase = next;
    this.table.put(live.row);
  }

  async #start(live: Live): Promise<void> {
    const { id, buildId } = live.row;
    try {
      await this.#context.sandboxStore.create(id);
      await this.#context.templateStore.cloneDisk(buildId, this.#context.sandboxStore.disk(id));
      const launched = await launch(this.#context, this.#slots, { sandboxId: id, buildId, policy: this.#policy(live) });
      this.#take(live, launched);
      await launched.vm.resume();
      await this.#introduce(live, launched);
    } catch (error) {
      await this.#tearDown(live);
      throw AenvError.from(error, 'sandbox_start_failed');
    }
  }

  async #save(live: Live): Promise<void> {
    const { vm, row } = live;
    if (!vm || !row.run) throw new AenvError('internal', `sandbox ${row.id} is running without a VM`);
    const { sandboxStore, guests, clock } = this.#context;
    try {
      await guests.dropStreams(row.run.slot.hostAddress, this.#guest(live).initKey);
      this.#context.onRouteChange(row.id);
      await vm.stop();
      const staged = await sandboxStore.stagePause(row.id);
      const { pages } = await vm.savePause(staged.state, staged.memoryDiff);
      await sandboxStore.publishPause(row.id, {
        version: 1,
        kind: 'pause',
        sandboxId: row.id,
        createdAt: clock.now(),
        buildId: row.buildId,
        pages,
      });
    } catch (error) {
      await this.#undoSave(live, vm);
      throw AenvError.from(error, 'snapshot_failed');
    }
    // From here on the saved state is the sandbox, and the VM only what is left of it.
    const { run } = row;
    live.vm = undefined;
    row.run = undefined;
    row.endAt = clock.now();
    row.phase = 'paused';
    this.table.put(row);
    await dismantle(this.#context, this.#slots, run, vm);
    this.#note(live, 'info', 'paused');
  }

  async #undoSave(live: Live, vm: Vm): Promise<void> {
    await this.#context.sandboxStore.discardStagedPause(live.row.id);
    try {
      await vm.resume();
    } catch (err) {
      this.#context.logger.error({ err, sandboxId: live.row.id }, 'the VM was lost while it was being paused');
      await this.#tearDown(live);
    }
  }

  /** Returns the error of a guest that runs but does not answer; everything earlier leaves the sandbox paused. */
  async #restore(live: Live, timeoutSeconds: number): Promise<unknown> {
    const { row } = live;
    const { sandboxStore, clock } = this.#context;
    if (!(await sandboxStore.pauseManifest(row.id))) {
      throw new AenvError('restore_failed', `the saved state of sandbox ${row.id} is incomplete`);
    }
    let launched: Launched;
    try {
      const saved = sandboxStore.saved(row.id);
      launched = await launch(this.#context, this.#slots, {
        sandboxId: row.id,
        buildId: row.buildId,
        policy: this.#policy(live),
        saved,
      });
    } catch (error) {
      throw AenvError.from(error, 'restore_failed');
    }
    // The record says `running` before the processors run: after a crash in between, the VM is adopted and goes on.
    const now = clock.now();
    row.startedAt = now;
    row.endAt = now + timeoutSeconds * 1000;
    row.settings.timeoutSeconds = timeoutSeconds;
    row.phase = 'running';
    this.#take(live, launched);
    row.phase = 'resuming';
    await launched.vm.resume();
    await sandboxStore.discardPause(row.id);
    try {
      await this.#introduce(live, launched);
    } catch (error) {
      return error;
    }
    this.#note(live, 'info', 'resumed');
    return undefined;
  }

  async #tearDown(live: Live): Promise<void> {
    const { vm, row } = live;
    live.vm = undefined;
    this.#context.onRouteChange(row.id);
    if (row.run) await dismantle(this.#context, this.#slots, row.run, vm);
    row.run = undefined;
    await this.#context.sandboxStore.remove(row.id);
  }

  /** Records a VM as that of the sandbox, before it runs. */
  #take(live: Live, { vm, run }: Launched): void {
    live.row.run = run;
    this.table.put(live.row);
    this.#watch(live, vm);
  }

  #watch(live: Live, vm: Vm): void {
    live.vm = vm;
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

  #introduce(live: Live, launched: Launched): Promise<void> {
    const { row } = live;
    const guest = this.#guest(live);
    return introduce(this.#context, launched, guest.initKey, {
      sandboxId: row.id,
      templateId: row.templateId,
      hostname: row.id,
      envVars: { ...guest.env, ...row.settings.envVars },
      user: guest.user,
      workdir: guest.workdir,
      ...(row.token === undefined ? {} : { accessToken: row.token }),
    });
  }

  #guest(live: Live): GuestSettings {
    const { guest } = live.build;
    if (!guest) throw new AenvError('internal', `build ${live.build.id} has no guest settings`);
    return guest;
  }

  #policy(live: Live) {
    return { internet: live.row.settings.allowInternetAccess };
  }

  #view(live: Live): SandboxView {
    return sandboxView(live.row, live.build, this.#templates.firstName(live.row.templateId));
  }

  #checkTimeout(seconds: number): void {
    const max = this.#context.limits.maxTimeoutSeconds;
    if (seconds <= max) return;
    throw new AenvError('bad_request', `Timeout cannot be greater than ${max} seconds (asked for ${seconds})`, {
      remedy: 'Ask for less, or raise sandbox.max_timeout_seconds in the configuration.',
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

  #note(live: Live, level: LogLevel, message: string): void {
    this.table.log(live.row.id, { timestamp: this.#context.clock.now(), level, message });
  }
}
