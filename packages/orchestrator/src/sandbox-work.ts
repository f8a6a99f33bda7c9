/**
 * What the operations on a sandbox do to the machine. `Sandboxes` decides when; each method here either does its whole
 * work or throws and says in `Live` what is left.
 */

import type { GuestState, SavedState } from '@aenv/snapshot';
import { AenvError, newLayerId } from '@aenv/std';
import type { Vm } from '@aenv/vmm';
import { checkpoint } from './checkpoint.ts';
import { compactLater, endMerging, type Merging, releaseLayers, roomForLayer, sealLayers } from './disk-layers.ts';
import type { LogLevel } from './engine.ts';
import { type Occasion, SYNC_MS } from './guest-port.ts';
import { dismantle, introduce, type Launched, launch } from './launch.ts';
import type { Context } from './options.ts';
import { type Run, type SandboxRow, type SandboxTable, topOf } from './sandbox-table.ts';
import type { SlotPool } from './slot-pool.ts';
import type { BuildRow, GuestSettings } from './template-table.ts';
import type { WarmVm } from './warm-pool.ts';

/** How long a guest may take to write its files where nothing is lost without that, milliseconds. */
const QUICK_SYNC_MS = 5000;

/** A record with what is under way and what runs. */
export interface Live {
  row: SandboxRow;
  build: BuildRow;
  /** Absent while there is none, and when the one of `row.run` is lost. */
  vm?: Vm;
  /** Layers of its disk that have been sealed by this server. */
  sealed?: Set<string>;
  /** Settles as the operation in progress does. */
  transition?: Promise<void>;
  /** Settles when the VM of a sandbox that has been paused is gone. */
  ending?: Promise<void>;
  /** Layers of its disk being merged. */
  merging?: Merging;
}

/** What a sandbox starts from: a build, or the state of a running sandbox. */
export interface Origin {
  build: BuildRow;
  /** Sealed layers between the template's disk and the new one, bottom first. */
  layers: string[];
  /** An empty layer over the last of them. */
  emptyLayer: string;
  /** Absent: as the build was captured. */
  state?: GuestState;
}

export class SandboxWork {
  readonly #context: Context;
  readonly #table: SandboxTable;
  readonly #slots: SlotPool;

  constructor(context: Context, table: SandboxTable, slots: SlotPool) {
    this.#context = context;
    this.#table = table;
    this.#slots = slots;
  }

  /** Leaves it to the caller to tear down what a failure has left. */
  async start(live: Live, origin: Origin, warm: WarmVm | undefined): Promise<void> {
    try {
      await this.#context.sandboxStore.create(live.row.id);
      if (!warm || !(await this.#wake(live, warm))) await this.#launch(live, origin);
      live.row.phase = 'running';
      this.#table.put(live.row);
    } catch (error) {
      throw AenvError.from(error, 'sandbox_start_failed');
    }
    this.note(live, 'info', 'started');
  }

  /** Makes a waiting VM the sandbox; false, and nothing of it is left, when it cannot be. */
  async #wake(live: Live, { launched, layer }: WarmVm): Promise<boolean> {
    const { launcher, layerStore, logger } = this.#context;
    try {
      const policy = policyOf(live);
      if (!policy.internet) await launcher.setPolicy(launched.run.slot.index, policy);
      await this.#take(live, launched);
      await launched.vm.resume();
      await this.greet(live, launched.run, launched.vm, 'claimed');
      return true;
    } catch (err) {
      logger.warn({ err, sandboxId: live.row.id }, 'a waiting VM was of no use; another one is started');
      live.row.run ??= launched.run;
      await this.#dropRun(live, launched.vm);
      live.vm = undefined;
      await layerStore.remove([layer]);
      return false;
    }
  }

  async #launch(live: Live, { emptyLayer, state }: Origin): Promise<void> {
    const { id, buildId } = live.row;
    const { layerStore, templateStore } = this.#context;
    await layerStore.clone(topOf(live.row), emptyLayer);
    const launched = await launch(this.#context, this.#slots, {
      sandboxId: id,
      buildId,
      diskFile: layerStore.path(topOf(live.row)),
      policy: policyOf(live),
      state: state ?? (await templateStore.guestState(buildId)),
    });
    await this.#take(live, launched);
    await this.#begin(live, launched);
  }

  /** Pauses. After a failure the sandbox runs on; `live.vm` is absent when it cannot. */
  async save(live: Live, withMemory: boolean): Promise<void> {
    const { vm, row } = live;
    if (!vm || !row.run) throw new AenvError('internal', `sandbox ${row.id} is running without a VM`);
    const { sandboxStore, clock, onRouteChange } = this.#context;
    const base = vm.record.memoryFile;
    try {
      if (!withMemory) await this.#sync(live);
      await endMerging(live);
      onRouteChange(row.id);
      await vm.stop();
      const staged = await sandboxStore.stagePause(row.id);
      const dump = withMemory ? await vm.savePause(staged.state, staged.memoryDiff) : undefined;
      await sandboxStore.publishPause(row.id, clock.now(), dump && { base, pages: dump.pages });
    } catch (error) {
      await this.#undoSave(live, vm);
      throw AenvError.from(error, 'snapshot_failed');
    }
    // From here on the saved state is the sandbox, and the VM only what is left of it: nobody waits for its end but who
    // resumes or kills the sandbox.
    live.vm = undefined;
    row.endAt = clock.now();
    row.phase = 'paused';
    this.record(live);
    this.note(live, 'info', 'paused');
    live.ending = this.#endPaused(live, vm);
  }

  /** Never rejects; what is left is taken up again by the next operation, or the next start of the server. */
  async #endPaused(live: Live, vm: Vm): Promise<void> {
    try {
      await this.#endRun(live, vm);
      if (live.row.phase === 'paused') this.record(live);
    } catch (err) {
      this.#context.logger.error({ err, sandboxId: live.row.id }, 'the VM of a paused sandbox could not be ended');
    }
  }

  async #undoSave(live: Live, vm: Vm): Promise<void> {
    const { sandboxStore, logger } = this.#context;
    try {
      await sandboxStore.discardStagedPause(live.row.id);
      await sandboxStore.discardPause(live.row.id);
      await vm.resume();
    } catch (err) {
      logger.error({ err, sandboxId: live.row.id }, 'the VM was lost while it was being paused');
      live.vm = undefined;
    }
  }

  /**
   * Resumes, or boots when the memory was not kept or is not wanted. Returns the error of a guest that runs but does not
   * answer; earlier ones leave the sandbox paused.
   */
  async restore(live: Live, timeoutSeconds: number, withMemory: boolean): Promise<unknown> {
    const { row } = live;
    const { sandboxStore, clock } = this.#context;
    const paused = { startedAt: row.startedAt, endAt: row.endAt };
    let launched: Launched;
    try {
      await this.#dropRun(live, undefined);
      const paused = await sandboxStore.paused(row.id);
      if (!paused) throw new AenvError('restore_failed', `the saved state of sandbox ${row.id} is incomplete`);
      // Before anything runs: a disk that a guest has booted from does not fit the memory any more.
      if (!withMemory && paused.guest) await sandboxStore.forgetMemory(row.id);
      launched = await launch(this.#context, this.#slots, {
        sandboxId: row.id,
        buildId: row.buildId,
        diskFile: this.#context.layerStore.path(topOf(row)),
        policy: policyOf(live),
        state: withMemory ? paused.guest : undefined,
      });
    } catch (error) {
      throw AenvError.from(error, 'restore_failed');
    }
    // The record says `running` before the processors run: after a crash in between, the VM is adopted and goes on.
    row.startedAt = clock.now();
    row.endAt = row.startedAt + timeoutSeconds * 1000;
    row.phase = 'running';
    try {
      await this.#take(live, launched);
    } catch (error) {
      Object.assign(row, paused);
      throw AenvError.from(error, 'restore_failed');
    }
    row.phase = 'resuming';
    try {
      await this.#begin(live, launched, () => sandboxStore.discardPause(row.id));
    } catch (error) {
      return AenvError.from(error, 'guest_unreachable');
    }
    this.note(live, 'info', 'resumed');
    return undefined;
  }

  /** Removes everything that the sandbox has on the machine. Can be repeated. */
  async tearDown(live: Live): Promise<void> {
    const { vm, row } = live;
    this.#context.onRouteChange(row.id);
    live.merging?.stop.abort();
    await this.#dropRun(live, vm);
    await live.merging?.done;
    live.vm = undefined;
    const { sandboxStore, layerStore, layers } = this.#context;
    await layerStore.remove(layers.onlyOf(row.id));
    await sandboxStore.remove(row.id);
  }

  /**
   * Saves the state of a running sandbox to `into`, or without that its disk alone; `holder` holds the sealed layers of its
   * disk, which are returned. After a failure the sandbox runs on; `live.vm` is absent when it cannot.
   */
  async capture(live: Live, kind: 'snapshot' | 'fork', holder: string, into?: SavedState): Promise<string[]> {
    if (kind === 'snapshot') await this.#syncForCopy(live, into !== undefined);
    await roomForLayer(live);
    const sealed = [...live.row.layers];
    const { run, top, stillMs, written } = await checkpoint(this.#context, live, holder, into);
    live.row.layers = [...sealed, top];
    live.row.run = run;
    this.record(live);
    const sealing = sealLayers(this.#context, live, sealed);
    // Neither goes on when the other has failed and what it works on is cleared away.
    await Promise.allSettled([sealing, written]);
    await Promise.all([sealing, written]);
    this.note(live, 'info', 'captured', { stoodStillMs: stillMs.toFixed(1) });
    compactLater(this.#context, live, () => this.record(live));
    return sealed;
  }

  /**
   * Puts the state of `origin` in the place of what runs. Until the new VM is recorded a failure changes nothing; from then
   * on it is the sandbox, and an error is about its guest.
   */
  async rollBack(live: Live, origin: Origin): Promise<void> {
    const { row } = live;
    await endMerging(live);
    const before = { vm: live.vm, run: row.run };
    const launched = await this.#launchBeside(live, origin);
    this.#context.onRouteChange(row.id);
    const drop = () => this.#dropBefore(live, before);
    await drop()
      .catch(drop)
      .catch((err: unknown) => {
        this.#context.logger.error({ err, sandboxId: row.id }, 'what a rollback replaced stays until the next start');
      });
    try {
      await this.#begin(live, launched);
    } catch (error) {
      throw AenvError.from(error, 'guest_unreachable');
    }
    this.note(live, 'info', 'rolled back');
  }

  async #launchBeside(live: Live, { build, layers: below, emptyLayer }: Origin): Promise<Launched> {
    const { layerStore, layers, templateStore } = this.#context;
    const { row } = live;
    const before = { buildId: row.buildId, layers: row.layers, run: row.run };
    const top = newLayerId();
    layers.hold(row.id, [...below, top]);
    try {
      await layerStore.clone(top, emptyLayer);
      const launched = await launch(this.#context, this.#slots, {
        sandboxId: row.id,
        buildId: build.id,
        diskFile: layerStore.path(top),
        policy: policyOf(live),
        state: await templateStore.guestState(build.id),
      });
      Object.assign(row, { buildId: build.id, layers: [...below, top], run: launched.run });
      try {
        this.#table.put(row);
      } catch (error) {
        await dismantle(this.#context, this.#slots, launched.run, launched.vm);
        throw error;
      }
      Object.assign(live, { build, vm: launched.vm });
      return launched;
    } catch (error) {
      Object.assign(row, before);
      await layerStore.remove([top]);
      await releaseLayers(this.#context, row);
      throw AenvError.from(error, 'restore_failed');
    }
  }

  async #dropBefore(live: Live, before: { vm?: Vm; run?: Run }): Promise<void> {
    if (before.run) await dismantle(this.#context, this.#slots, before.run, before.vm);
    await releaseLayers(this.#context, live.row);
  }

  /** Records a VM as that of the sandbox, before it runs; a VM that cannot be recorded is ended. */
  async #take(live: Live, { vm, run }: Launched): Promise<void> {
    live.row.run = run;
    live.vm = vm;
    try {
      this.#table.put(live.row);
    } catch (error) {
      await this.#dropRun(live, vm);
      live.vm = undefined;
      throw error;
    }
  }

  async #dropRun(live: Live, vm: Vm | undefined): Promise<void> {
    await live.ending;
    await this.#endRun(live, vm);
  }

  async #endRun(live: Live, vm: Vm | undefined): Promise<void> {
    if (live.row.run) await dismantle(this.#context, this.#slots, live.row.run, vm);
    live.row.run = undefined;
  }

  /** Lets a VM run that has been recorded, and tells its guest who it is. `then`: what is due once it runs. */
  async #begin(live: Live, { vm, run, occasion }: Launched, then = () => Promise.resolve()): Promise<void> {
    await vm.resume();
    await then();
    await this.greet(live, run, vm, occasion);
  }

  /** Has the guest write everything to its disk. */
  async #sync(live: Live, timeoutMs = SYNC_MS): Promise<void> {
    const address = live.row.run?.slot.hostAddress;
    if (address === undefined) return;
    await this.#context.guests.sync(address, guestOf(live).initKey, timeoutMs);
  }

  /** The disk of a snapshot is to be of use by itself; when the memory is kept too, nothing is lost without that. */
  async #syncForCopy(live: Live, hasMemory: boolean): Promise<void> {
    try {
      await this.#sync(live, hasMemory ? QUICK_SYNC_MS : SYNC_MS);
    } catch (error) {
      if (!hasMemory) throw AenvError.from(error, 'snapshot_failed');
      this.note(
        live,
        'warn',
        'the guest did not write all its files to the disk: a snapshot has them in its memory only',
      );
    }
  }

  /** Waits for the guest and tells it who it is; one that was woken from a memory image forgets the clients in it. */
  greet(live: Live, run: Run, vm: Vm, occasion: Occasion): Promise<void> {
    const { row } = live;
    const guest = guestOf(live);
    return introduce(this.#context, { vm, run }, guest.initKey, {
      occasion,
      sandboxId: row.id,
      templateId: row.templateId,
      hostname: row.id,
      envVars: { ...guest.env, ...row.settings.envVars },
      user: guest.user,
      workdir: guest.workdir,
      ...(row.token === undefined ? {} : { accessToken: row.token }),
    });
  }

  /** Writes the record down where a failure to do so loses nothing: recovery reaches the same state without it. */
  record(live: Live): void {
    try {
      this.#table.put(live.row);
    } catch (err) {
      this.#context.logger.error({ err, sandboxId: live.row.id }, 'the state of a sandbox could not be recorded');
    }
  }

  note(live: Live, level: LogLevel, message: string, fields?: Record<string, string>): void {
    try {
      const timestamp = this.#context.clock.now();
      this.#table.log(live.row.id, { timestamp, level, message, ...(fields ? { fields } : {}) });
    } catch (err) {
      this.#context.logger.warn({ err, sandboxId: live.row.id }, 'a log entry of a sandbox was lost');
    }
  }
}

function guestOf(live: Live): GuestSettings {
  const { guest } = live.build;
  if (!guest) throw new AenvError('internal', `build ${live.build.id} has no guest settings`);
  return guest;
}

function policyOf(live: Live) {
  return { internet: live.row.settings.allowInternetAccess };
}
