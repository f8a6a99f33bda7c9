/**
 * Takes the state of a running sandbox while it stands still for a moment: device state, changed memory, and a seal on its
 * disk, whose writes go to a new layer from then on.
 */
import type { SavedState } from '@aenv/snapshot';
import { AenvError, newLayerId } from '@aenv/std';
import type { Vm } from '@aenv/vmm';
import type { Context } from './options.ts';
import { type Run, topOf } from './sandbox-table.ts';
import type { Live } from './sandbox-work.ts';

/** Layers of one disk; with 300 of them QEMU still starts, in half a second. */
const MOST_LAYERS = 200;

export interface Checkpoint {
  /** The layer that takes the guest's writes now. */
  top: string;
  run: Run;
  /** How long the processors did not run, milliseconds. */
  stillMs: number;
  /** Settles when the files of the state are complete, or cannot be. */
  written: Promise<void>;
}

/** The state of a VM that stands still: read, and perhaps still being written. */
interface Saving {
  written: Promise<void>;
}

/** Without `into` only the disk is kept. After a failure the VM runs on as it was, or `live.vm` is absent because it cannot. */
export async function checkpoint(context: Context, live: Live, holder: string, into?: SavedState): Promise<Checkpoint> {
  const { vm, row } = live;
  if (!vm || !row.run) throw new AenvError('internal', `sandbox ${row.id} is running without a VM`);
  const { layerStore, layers, templateStore } = context;
  const top = newLayerId();
  // Held first: whatever happens to the sandbox, nothing that the copy stands on goes.
  layers.hold(holder, row.layers);
  layers.hold(row.id, [top]);
  try {
    const { disk } = await templateStore.manifest(row.buildId);
    refuseTooDeep(row.id, row.layers.length);
    await layerStore.create(top, layerStore.path(topOf(row)), disk.sizeMb);
    await vm.addLayer(layerStore.path(top));
    const { stillMs, saving } = await standStill(context, live, vm, () => saveAndSeal(vm, into, layerStore.path(top)));
    return { top, run: { ...row.run, vm: vm.record }, stillMs, written: saving.written };
  } catch (error) {
    await dropLayer(context, live, vm, top);
    throw AenvError.from(error, 'snapshot_failed');
  }
}

/** Every copy adds a layer, and a start opens all of them. */
function refuseTooDeep(id: string, layers: number): void {
  if (layers < MOST_LAYERS) return;
  throw new AenvError(
    'snapshot_failed',
    `the disk of sandbox ${id} consists of ${layers} layers, the most there may be`,
    {
      remedy: 'Start a sandbox from its template, and copy the files over.',
    },
  );
}

/**
 * Returns when the VM may run again. What could not be read is told by `written`: once the disk is sealed, the new layer is
 * the sandbox's, whatever became of the rest.
 */
async function saveAndSeal(vm: Vm, into: SavedState | undefined, top: string): Promise<Saving> {
  if (!into) {
    await vm.sealDisk(top);
    return { written: Promise.resolve() };
  }
  const read = Promise.withResolvers<void>();
  const written = vm.savePause(into.state, into.memoryDiff, read.resolve).then(() => {});
  const [sealed] = await Promise.allSettled([vm.sealDisk(top), Promise.race([read.promise, written])]);
  if (sealed.status === 'fulfilled') return { written };
  await written.catch(() => {});
  throw sealed.reason;
}

async function standStill(
  { logger }: Context,
  live: Live,
  vm: Vm,
  work: () => Promise<Saving>,
): Promise<{ stillMs: number; saving: Saving }> {
  const begun = performance.now();
  const [outcome] = await Promise.allSettled([vm.stop().then(work)]);
  try {
    // The sandbox depends on it, so one refusal does not count.
    await vm.resume().catch(() => vm.resume());
  } catch (err) {
    logger.error({ err, sandboxId: live.row.id }, 'the VM was lost while its state was being captured');
    live.vm = undefined;
    throw err;
  }
  if (outcome.status === 'rejected') throw outcome.reason;
  return { stillMs: performance.now() - begun, saving: outcome.value };
}

/** What cannot be dropped now goes with the sandbox. */
async function dropLayer({ layerStore, layers, logger }: Context, live: Live, vm: Vm, layer: string): Promise<void> {
  try {
    await vm.removeLayer(layerStore.path(layer));
    await layerStore.remove([layer]);
    layers.release(live.row.id, [layer]);
  } catch (err) {
    logger.warn({ err, sandboxId: live.row.id }, 'an unused disk layer stays until the sandbox is deleted');
  }
}
