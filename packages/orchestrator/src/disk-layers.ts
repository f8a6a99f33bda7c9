/**
 * The layers of a sandbox's disk. Every copy adds one, so they are merged in the background: a disk consists of a few
 * layers whatever its age, and what is merged is at least as large as what it is merged with, so a byte is copied seldom.
 */
import type { Vm } from '@aenv/vmm';
import type { Context } from './options.ts';
import type { SandboxRow } from './sandbox-table.ts';
import type { Live } from './sandbox-work.ts';

/** A disk of more layers is merged. */
export const MANY_LAYERS = 16;
/** With so many layers, a copy waits for the merge instead of ending it. */
const TOO_MANY_LAYERS = 64;
/** At least so many become one. */
const LEAST_MERGED = 8;

export interface Merging {
  stop: AbortController;
  /** Never rejects. */
  done: Promise<void>;
}

/** Without it no other VM could read them. All of them: an earlier seal may have failed, or its server have died. */
export async function sealLayers(context: Context, live: Live, layers: readonly string[]): Promise<void> {
  live.sealed ??= new Set();
  for (const layer of layers) {
    if (live.sealed.has(layer)) continue;
    await context.layerStore.seal(layer);
    live.sealed.add(layer);
  }
}

/** Removes the layers that the disk of the sandbox does not consist of any more, unless somebody else needs them. */
export async function releaseLayers({ layerStore, layers }: Context, { id, layers: used }: SandboxRow): Promise<void> {
  const unused = layers.of(id).filter((layer) => !used.includes(layer));
  await layerStore.remove(layers.onlyOf(id, unused));
  layers.release(id, unused);
}

/** Merges layers of a running sandbox that has many. `record`: writes its record. */
export function compactLater(context: Context, live: Live, record: () => void): void {
  const { vm, row } = live;
  if (!vm || live.merging || row.layers.length <= MANY_LAYERS) return;
  const stop = new AbortController();
  const done = merge(context, live, vm, stop.signal, record)
    .catch((err: unknown) => {
      if (stop.signal.aborted) return;
      context.logger.warn(
        { err, sandboxId: row.id },
        'disk layers could not be merged; it is tried after the next copy',
      );
    })
    .finally(() => {
      live.merging = undefined;
    });
  live.merging = { stop, done };
}

/** Ends a merge, which can be begun anew. Afterwards nothing but the caller changes the layers. */
export async function endMerging({ merging }: Live): Promise<void> {
  merging?.stop.abort();
  await merging?.done;
}

/** The same before a copy, which adds a layer. */
export async function roomForLayer(live: Live): Promise<void> {
  if (live.row.layers.length >= TOO_MANY_LAYERS) await live.merging?.done;
  await endMerging(live);
}

async function merge(context: Context, live: Live, vm: Vm, signal: AbortSignal, record: () => void): Promise<void> {
  const { row } = live;
  const { layerStore, templateStore } = context;
  const first = firstToMerge(await Promise.all(row.layers.map((layer) => layerStore.bytes(layer))));
  const kept = row.layers.slice(0, first);
  const below = kept.at(-1);
  const files = below === undefined ? await templateStore.filesBelowLayers(row.buildId) : [layerStore.path(below)];
  await vm.mergeDisk(files.at(-1) ?? '', signal);
  row.layers = [...kept, ...row.layers.slice(-1)];
  record();
  await releaseLayers(context, row);
}

/** Of layers of these sizes, bottom first: the index of the first one to merge with all above it. */
export function firstToMerge(bytes: readonly number[]): number {
  let first = Math.max(0, bytes.length - LEAST_MERGED);
  let sum = bytes.slice(first).reduce((total, size) => total + size, 0);
  for (let below = bytes[first - 1]; below !== undefined && below <= sum; below = bytes[first - 1]) {
    sum += below;
    first -= 1;
  }
  return first;
}
