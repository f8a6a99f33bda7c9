/**
 * Disk layers by id. One that a sandbox writes to is its own; once it is sealed, it never changes or moves, and any number
 * of disks stand on it. Who needs which is recorded in the database: a layer without a holder is removed.
 */
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Launcher } from '@aenv/linux';
import { ifThere } from '@aenv/std';
import { cloneLayer, createLayer } from './disk.ts';
import type { Home } from './home.ts';

const SUFFIX = '.qcow2';

export class LayerStore {
  readonly #home: Home;
  readonly #launcher: Launcher;

  constructor(home: Home, launcher: Launcher) {
    this.#home = home;
    this.#launcher = launcher;
  }

  path(id: string): string {
    return join(this.#home.layers, `${id}${SUFFIX}`);
  }

  /** Makes `id` an empty layer over the qcow2 file `base`, for a disk of `sizeMb`. */
  create(id: string, base: string, sizeMb: number): Promise<void> {
    return createLayer(this.#launcher, { path: this.path(id), base, baseFormat: 'qcow2', sizeMb });
  }

  /** Makes `id` a copy of `emptyLayer`: much quicker than `create`. */
  clone(id: string, emptyLayer: string): Promise<void> {
    return cloneLayer(emptyLayer, this.path(id));
  }

  /** Bytes that it takes on the disk; 0 when it is gone. */
  async bytes(id: string): Promise<number> {
    return ((await ifThere(stat(this.path(id))))?.blocks ?? 0) * 512;
  }

  seal(id: string): Promise<void> {
    return this.#launcher.seal(this.path(id));
  }

  async remove(ids: readonly string[]): Promise<void> {
    for (const id of ids) await rm(this.path(id), { force: true });
  }

  /** Removes every layer that is not one of `ids`. Returns their names. */
  async removeUnowned(ids: ReadonlySet<string>): Promise<string[]> {
    const unowned = (await readdir(this.#home.layers)).filter((name) => !ids.has(name.replace(SUFFIX, '')));
    for (const name of unowned) await rm(join(this.#home.layers, name), { recursive: true, force: true });
    return unowned;
  }
}
