/**
 * VMs that wait, restored and with a guest that has answered, for sandboxes of the builds that are in use. A claim only lets
 * one run and tells its guest what is new. No record names them: what a server leaves behind, the next one removes.
 */
import { newLayerId, newSandboxId } from '@aenv/std';
import { dismantle, introduce, type Launched, launch } from './launch.ts';
import type { Context } from './options.ts';
import type { SlotPool } from './slot-pool.ts';
import type { BuildRow } from './template-table.ts';

/** After a claim the machine belongs to whoever claimed: no VM is made for this long, milliseconds. */
const QUIET_MS = 250;
/** How long the command may take that makes a guest warm, milliseconds. */
const REHEARSAL_MS = 10_000;
/** MiB of the host's memory that the pool never touches. */
const RESERVE_MB = 1024;

export interface WarmVm {
  /** Id of the sandbox that it becomes; its guest has it as its name already. */
  sandboxId: string;
  /** Its disk layer. */
  layer: string;
  launched: Launched;
}

export interface WarmPoolOptions {
  /** VMs for each build in use; 0 = none. */
  size: number;
  /** A build that nobody has started from for this long has no VMs, milliseconds. */
  maxIdleMs: number;
  /** MiB that the host has to give. */
  freeMemoryMb: () => number;
  /** Whether one more VM may run. */
  hasRoom: () => boolean;
}

interface Shelf {
  build: BuildRow;
  ready: WarmVm[];
  /** When a sandbox was started from the build last. */
  usedAt: number;
}

export class WarmPool {
  readonly #context: Context;
  readonly #slots: SlotPool;
  readonly #options: WarmPoolOptions;
  readonly #shelves = new Map<string, Shelf>();
  readonly #removing = new Set<Promise<void>>();
  #filling: Promise<void> | undefined;
  #closed = false;
  hits = 0;
  misses = 0;

  constructor(context: Context, slots: SlotPool, options: WarmPoolOptions) {
    this.#context = context;
    this.#slots = slots;
    this.#options = options;
  }

  get readyCount(): number {
    let count = 0;
    for (const { ready } of this.#shelves.values()) count += ready.length;
    return count;
  }

  /** A VM that is the caller's from now on, stopped; undefined when none waits. Notes that the build is in use. */
  claim(build: BuildRow): WarmVm | undefined {
    if (this.#options.size === 0) return undefined;
    const shelf = this.#shelves.get(build.id) ?? { build, ready: [], usedAt: 0 };
    this.#shelves.set(build.id, shelf);
    shelf.usedAt = this.#context.clock.now();
    const vm = shelf.ready.shift();
    if (vm) this.hits += 1;
    else this.misses += 1;
    return vm;
  }

  /** Fills up, and gives back what is too old or what the host needs; called by a timer. Never rejects. */
  sweep(): void {
    const now = this.#context.clock.now();
    const tight = this.#options.freeMemoryMb() < RESERVE_MB;
    for (const [id, shelf] of this.#shelves) {
      const idle = now - shelf.usedAt > this.#options.maxIdleMs;
      if (idle) this.#shelves.delete(id);
      if (idle || tight) for (const vm of shelf.ready.splice(0)) this.#remove(vm);
    }
    if (!this.#closed && !this.#filling && this.#neediest(now)) {
      this.#filling = this.#fill().finally(() => {
        this.#filling = undefined;
      });
    }
  }

  /** Gives back the VMs of builds that are to be deleted. Returns when nothing of them is left. */
  async forget(buildIds: ReadonlySet<string>): Promise<void> {
    for (const id of buildIds) {
      const shelf = this.#shelves.get(id);
      this.#shelves.delete(id);
      for (const vm of shelf?.ready.splice(0) ?? []) this.#remove(vm);
    }
    await this.#filling;
    await Promise.all(this.#removing);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.forget(new Set(this.#shelves.keys()));
  }

  /** The build in use that misses most, if the machine has room for another VM and nobody has just claimed one. */
  #neediest(now: number): Shelf | undefined {
    const { size, freeMemoryMb, hasRoom } = this.#options;
    const shelves = [...this.#shelves.values()].filter(({ ready }) => ready.length < size);
    if (shelves.length === 0 || !hasRoom()) return undefined;
    if ([...this.#shelves.values()].some(({ usedAt }) => now - usedAt < QUIET_MS)) return undefined;
    const shelf = shelves.sort((one, other) => one.ready.length - other.ready.length)[0];
    return shelf && freeMemoryMb() - shelf.build.memoryMb > RESERVE_MB ? shelf : undefined;
  }

  async #fill(): Promise<void> {
    for (;;) {
      const shelf = this.#closed ? undefined : this.#neediest(this.#context.clock.now());
      if (!shelf) return;
      try {
        const vm = await this.#warmUp(shelf.build);
        // The build may have been given up meanwhile.
        if (this.#shelves.get(shelf.build.id) === shelf && !this.#closed) this.#keep(shelf, vm);
        else this.#remove(vm);
      } catch (err) {
        this.#context.logger.warn({ err, buildId: shelf.build.id }, 'no VM could be made ready');
        this.#shelves.delete(shelf.build.id);
      }
    }
  }

  #keep(shelf: Shelf, vm: WarmVm): void {
    shelf.ready.push(vm);
    void vm.launched.vm.ended.then(() => {
      const at = shelf.ready.indexOf(vm);
      if (at < 0) return;
      shelf.ready.splice(at, 1);
      this.#remove(vm);
    });
  }

  async #warmUp(build: BuildRow): Promise<WarmVm> {
    const { layerStore, layers, templateStore } = this.#context;
    const { guest } = build;
    if (!guest) throw new Error(`build ${build.id} has no guest settings`);
    const [sandboxId, layer] = [newSandboxId(), newLayerId()];
    let launched: Launched | undefined;
    layers.hold(sandboxId, [...layers.of(build.id), layer]);
    try {
      await layerStore.clone(layer, templateStore.files(build.id).emptyLayer);
      launched = await launch(this.#context, this.#slots, {
        sandboxId,
        buildId: build.id,
        diskFile: layerStore.path(layer),
        policy: { internet: true },
        state: await templateStore.guestState(build.id),
      });
      await launched.vm.resume();
      await introduce(this.#context, launched, guest.initKey, {
        occasion: launched.occasion,
        sandboxId,
        templateId: build.templateId,
        hostname: sandboxId,
        envVars: guest.env,
        user: guest.user,
        workdir: guest.workdir,
      });
      await this.#rehearse(launched, guest.user);
      // It waits without costing processor time.
      await launched.vm.stop();
      return { sandboxId, layer, launched };
    } catch (error) {
      if (launched) await dismantle(this.#context, this.#slots, launched.run, launched.vm);
      await layerStore.remove([layer]);
      layers.release(sandboxId);
      throw error;
    }
  }

  /** A guest runs its first command several times slower than the next one. One that cannot is of use nevertheless. */
  async #rehearse({ run }: Launched, user: string): Promise<void> {
    try {
      const command = { script: 'true', user, cwd: '', timeoutMs: REHEARSAL_MS };
      const { exit } = await this.#context.guests.start(run.slot.hostAddress, command);
      await exit;
    } catch (err) {
      this.#context.logger.debug({ err }, 'a waiting VM could not run a command');
    }
  }

  #remove({ sandboxId, launched, layer }: WarmVm): void {
    const { layers, layerStore } = this.#context;
    const work = dismantle(this.#context, this.#slots, launched.run, launched.vm)
      .then(() => layerStore.remove([layer]))
      .then(() => layers.release(sandboxId))
      .catch((err: unknown) =>
        this.#context.logger.error({ err, vm: launched.vm.record.id }, 'a waiting VM is removed at the next start'),
      )
      .finally(() => this.#removing.delete(work));
    this.#removing.add(work);
  }
}
