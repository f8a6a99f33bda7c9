/**
 * What the operations on a sandbox do to the machine. `Sandboxes` decides when; each method here either does its whole
 * work or throws and says in `Live` what is left.
 */

import { AenvError } from '@aenv/std';
import type { Vm } from '@aenv/vmm';
import type { LogLevel } from './engine.ts';
import type { Occasion } from './guest-port.ts';
import { dismantle, introduce, type Launched, launch } from './launch.ts';
import type { Context } from './options.ts';
import type { SandboxRow, SandboxTable } from './sandbox-table.ts';
import type { SlotPool } from './slot-pool.ts';
import type { BuildRow, GuestSettings } from './template-table.ts';

/** A record with what is under way and what runs. */
export interface Live {
  row: SandboxRow;
  build: BuildRow;
  /** Absent while there is none, and when the one of `row.run` is lost. */
  vm?: Vm;
  /** Settles as the operation in progress does. */
  transition?: Promise<void>;
  /** Settles when the VM of a sandbox that has been paused is gone. */
  ending?: Promise<void>;
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
  async start(live: Live): Promise<void> {
    const { id, buildId } = live.row;
    const { sandboxStore, templateStore } = this.#context;
    try {
      await sandboxStore.create(id);
      await templateStore.cloneDisk(buildId, sandboxStore.disk(id));
      const launched = await launch(this.#context, this.#slots, { sandboxId: id, buildId, policy: policyOf(live) });
      await this.#take(live, launched);
      await launched.vm.resume();
      await this.greet(live, launched, 'woken');
      live.row.phase = 'running';
      this.#table.put(live.row);
    } catch (error) {
      throw AenvError.from(error, 'sandbox_start_failed');
    }
    this.note(live, 'info', 'started');
  }

  /** Pauses. After a failure the sandbox runs on; `live.vm` is absent when it cannot. */
  async save(live: Live): Promise<void> {
    const { vm, row } = live;
    if (!vm || !row.run) throw new AenvError('internal', `sandbox ${row.id} is running without a VM`);
    const { sandboxStore, clock, onRouteChange } = this.#context;
    try {
      onRouteChange(row.id);
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

  /** Resumes. Returns the error of a guest that runs but does not answer; earlier ones leave the sandbox paused. */
  async restore(live: Live, timeoutSeconds: number): Promise<unknown> {
    const { row } = live;
    const { sandboxStore, clock } = this.#context;
    const paused = { startedAt: row.startedAt, endAt: row.endAt };
    let launched: Launched;
    try {
      await this.#dropRun(live, undefined);
      if (!(await sandboxStore.pauseManifest(row.id))) {
        throw new AenvError('restore_failed', `the saved state of sandbox ${row.id} is incomplete`);
      }
      launched = await launch(this.#context, this.#slots, {
        sandboxId: row.id,
        buildId: row.buildId,
        policy: policyOf(live),
        saved: sandboxStore.saved(row.id),
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
      await launched.vm.resume();
      await sandboxStore.discardPause(row.id);
      await this.greet(live, launched, 'woken');
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
    await this.#dropRun(live, vm);
    live.vm = undefined;
    await this.#context.sandboxStore.remove(row.id);
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

  /** Waits for the guest and tells it who it is; one that was woken from a memory image forgets the clients in it. */
  greet(live: Live, launched: Launched, occasion: Occasion): Promise<void> {
    const { row } = live;
    const guest = guestOf(live);
    return introduce(this.#context, launched, guest.initKey, {
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

  note(live: Live, level: LogLevel, message: string): void {
    try {
      this.#table.log(live.row.id, { timestamp: this.#context.clock.now(), level, message });
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
