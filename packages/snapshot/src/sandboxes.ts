/**
 * What a sandbox has on disk beside its layers: the saved state while it is paused. It is staged and appears in one
 * rename, so it is complete or not there.
 */
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isSystemError } from '@aenv/std';
import type { Home } from './home.ts';
import { type GuestState, MANIFEST_VERSION, type PausedMemory, readManifest, writeManifest } from './manifest.ts';

export interface SavedState {
  directory: string;
  /** Device state. */
  state: string;
  memoryDiff: string;
}

function savedIn(directory: string): SavedState {
  return { directory, state: join(directory, 'state'), memoryDiff: join(directory, 'memory.diff') };
}

async function sizesOf({ state, memoryDiff }: SavedState): Promise<PausedMemory['sizes']> {
  return { state: await sizeOf(state), memoryDiff: await sizeOf(memoryDiff) };
}

/** Bytes of the file; -1 when there is none. */
async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return -1;
    throw error;
  }
}

export class SandboxStore {
  readonly #home: Home;

  constructor(home: Home) {
    this.#home = home;
  }

  directory(id: string): string {
    return join(this.#home.sandboxes, id);
  }

  /** Where the saved state lies while the sandbox is paused; `paused` tells what there is. */
  saved(id: string): SavedState {
    return savedIn(join(this.directory(id), 'pause'));
  }

  /** Where the VMM's console goes; kept as long as the sandbox. */
  console(id: string): string {
    return join(this.directory(id), 'console.log');
  }

  async create(id: string): Promise<void> {
    await mkdir(this.directory(id), { mode: 0o711 });
  }

  /** An empty directory for a pause to write into. */
  async stagePause(id: string): Promise<SavedState> {
    const staged = savedIn(join(this.directory(id), 'pause.tmp'));
    await rm(staged.directory, { recursive: true, force: true });
    await mkdir(staged.directory, { mode: 0o711 });
    return staged;
  }

  /**
   * Makes a staged pause the saved state of the sandbox. It survives the death of every process; waiting for the disk
   * would cost more than the pause itself, so after a power cut the sizes tell whether it got there.
   */
  async publishPause(id: string, createdAt: number, memory?: Omit<PausedMemory, 'sizes'>): Promise<void> {
    const staged = savedIn(join(this.directory(id), 'pause.tmp'));
    const manifest = { version: MANIFEST_VERSION, kind: 'pause', sandboxId: id, createdAt } as const;
    const full = memory ? { ...manifest, memory: { ...memory, sizes: await sizesOf(staged) } } : manifest;
    await writeManifest(staged.directory, full, { durable: false });
    const { directory } = this.saved(id);
    await rm(directory, { recursive: true, force: true });
    await rename(staged.directory, directory);
  }

  /** Makes of the saved state one without memory, in one step. */
  async forgetMemory(id: string): Promise<void> {
    const { directory, state, memoryDiff } = this.saved(id);
    const manifest = await readManifest(directory, 'pause');
    if (!manifest) return;
    const { memory: _, ...rest } = manifest;
    await writeManifest(directory, rest, { durable: false });
    for (const path of [state, memoryDiff]) await rm(path, { force: true });
  }

  async discardStagedPause(id: string): Promise<void> {
    await rm(join(this.directory(id), 'pause.tmp'), { recursive: true, force: true });
  }

  /** The saved state has been taken up again by a running VM and is void. */
  async discardPause(id: string): Promise<void> {
    await rm(this.saved(id).directory, { recursive: true, force: true });
  }

  /** The saved state, with `guest` when the memory is part of it; undefined when there is none that is complete. */
  async paused(id: string): Promise<{ guest?: GuestState } | undefined> {
    const saved = this.saved(id);
    const manifest = await readManifest(saved.directory, 'pause');
    if (!manifest?.memory) return manifest && {};
    const { base, sizes } = manifest.memory;
    const { state, memoryDiff } = await sizesOf(saved);
    if (state !== sizes.state || memoryDiff !== sizes.memoryDiff) return undefined;
    return { guest: { memory: { base, diff: saved.memoryDiff }, state: saved.state } };
  }

  async remove(id: string): Promise<void> {
    await rm(this.directory(id), { recursive: true, force: true });
  }

  /** Removes every directory that is not of one of `ids`. Returns their names. */
  async removeUnowned(ids: ReadonlySet<string>): Promise<string[]> {
    const unowned = (await readdir(this.#home.sandboxes)).filter((name) => !ids.has(name));
    for (const name of unowned) await this.remove(name);
    return unowned;
  }
}
