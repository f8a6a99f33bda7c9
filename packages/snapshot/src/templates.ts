/**
 * Templates and snapshots on disk: a directory per build with the memory (an image, or pages over another build's), the
 * device state, for a template the sealed disk, and an empty layer to copy for each start. A build is staged under another
 * name and appears in one rename.
 */
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Launcher } from '@aenv/linux';
import { AenvError, syncPath } from '@aenv/std';
import { createLayer, type DiskFormat } from './disk.ts';
import type { Home } from './home.ts';
import {
  type GuestState,
  MANIFEST_VERSION,
  type MachineShape,
  readManifest,
  type TemplateManifest,
  writeManifest,
} from './manifest.ts';

import type { SavedState } from './sandboxes.ts';

const STAGING_PREFIX = '.staging-';

export interface TemplateFiles {
  directory: string;
  memory: string;
  state: string;
  /** Pages that differ from the memory of another build; snapshots have this instead of `memory`. */
  memoryDiff: string;
  disk: string;
  /** An empty layer over the disk. */
  emptyLayer: string;
}

function filesIn(directory: string): TemplateFiles {
  return {
    directory,
    memory: join(directory, 'memory'),
    state: join(directory, 'state'),
    memoryDiff: join(directory, 'memory.diff'),
    disk: join(directory, 'disk.qcow2'),
    emptyLayer: join(directory, 'empty.qcow2'),
  };
}

type Content = Omit<TemplateManifest, 'version' | 'kind' | 'buildId'>;

/** What a build's disk stands on. */
export interface DiskBase {
  path: string;
  format: DiskFormat;
  sizeMb: number;
  /** `path` and everything below it, bottom first. */
  parents: string[];
}

export class TemplateStore {
  readonly #home: Home;
  readonly #launcher: Launcher;

  constructor(home: Home, launcher: Launcher) {
    this.#home = home;
    this.#launcher = launcher;
  }

  files(buildId: string): TemplateFiles {
    return filesIn(join(this.#home.templates, buildId));
  }

  #staging(buildId: string): TemplateFiles {
    return filesIn(join(this.#home.templates, `${STAGING_PREFIX}${buildId}`));
  }

  /** The manifest of a published build; `template_not_found` when there is none. */
  async manifest(buildId: string): Promise<TemplateManifest> {
    const manifest = await readManifest(this.files(buildId).directory, 'template');
    if (!manifest) throw new AenvError('template_not_found', `the files of build ${buildId} are missing`);
    return manifest;
  }

  /** What a VM of a published build is restored from; undefined when it boots. */
  async guestState(buildId: string): Promise<GuestState | undefined> {
    const { memory } = await this.manifest(buildId);
    return memory && { memory, state: this.files(buildId).state };
  }

  /** The disk of the template that a build is or comes from, and what that stands on, bottom first: all but its own layers. */
  async filesBelowLayers(buildId: string): Promise<string[]> {
    const { disk } = await this.manifest(buildId);
    const files = [...disk.parents, disk.path];
    return files.slice(0, files.findLastIndex((path) => dirname(path) !== this.#home.layers) + 1);
  }

  /** Starts a build: an empty directory with an empty disk layer over `base`. */
  async stage(buildId: string, base: DiskBase): Promise<TemplateFiles> {
    const files = this.#staging(buildId);
    await rm(files.directory, { recursive: true, force: true });
    await mkdir(files.directory, { mode: 0o711 });
    await createLayer(this.#launcher, {
      path: files.disk,
      base: base.path,
      baseFormat: base.format,
      sizeMb: base.sizeMb,
    });
    return files;
  }

  /** An empty directory for a snapshot to write into. */
  async stageSnapshot(buildId: string): Promise<SavedState> {
    const { directory, state, memoryDiff } = this.#staging(buildId);
    await rm(directory, { recursive: true, force: true });
    await mkdir(directory, { mode: 0o711 });
    return { directory, state, memoryDiff };
  }

  /** An empty layer over `base`, a qcow2 file, beside what is staged. Returns its path. */
  async stageEmptyLayer(buildId: string, base: string, sizeMb: number): Promise<string> {
    const { emptyLayer } = this.#staging(buildId);
    await createLayer(this.#launcher, { path: emptyLayer, base, baseFormat: 'qcow2', sizeMb });
    return emptyLayer;
  }

  /** Makes the staged files immutable and the build visible, in one step. */
  async publish(buildId: string, base: DiskBase, machine: MachineShape, now: number): Promise<void> {
    const staged = this.#staging(buildId);
    const final = this.files(buildId);
    await this.#publish(buildId, [staged.memory, staged.state, staged.disk], {
      createdAt: now,
      machine,
      memory: { base: final.memory },
      disk: { path: final.disk, sizeMb: base.sizeMb, parents: base.parents },
    });
  }

  /**
   * The same for a snapshot, whose disk is a sealed layer and whose memory is pages over `memoryBase`; without one there is
   * only the disk.
   */
  async publishSnapshot(buildId: string, content: Omit<Content, 'memory'>, memoryBase?: string): Promise<void> {
    const staged = this.#staging(buildId);
    if (memoryBase === undefined) {
      await this.#publish(buildId, [], content);
      return;
    }
    await this.#publish(buildId, [staged.state, staged.memoryDiff], {
      ...content,
      memory: { base: memoryBase, diff: this.files(buildId).memoryDiff },
    });
  }

  async #publish(buildId: string, files: string[], content: Content): Promise<void> {
    const { directory } = this.#staging(buildId);
    for (const path of files) await this.#launcher.seal(path);
    const emptyLayer = await this.stageEmptyLayer(buildId, content.disk.path, content.disk.sizeMb);
    for (const path of [...files, emptyLayer]) await syncPath(path);
    await writeManifest(directory, { version: MANIFEST_VERSION, kind: 'template', buildId, ...content });
    await rename(directory, this.files(buildId).directory);
    await syncPath(this.#home.templates);
  }

  async discardStaging(buildId: string): Promise<void> {
    await rm(this.#staging(buildId).directory, { recursive: true, force: true });
  }

  async remove(buildId: string): Promise<void> {
    await rm(this.files(buildId).directory, { recursive: true, force: true });
  }

  /** Removes every directory that is not one of `buildIds`, staging directories included. Returns their names. */
  async removeUnowned(buildIds: ReadonlySet<string>): Promise<string[]> {
    const unowned = (await readdir(this.#home.templates)).filter((name) => !buildIds.has(name));
    for (const name of unowned) await rm(join(this.#home.templates, name), { recursive: true, force: true });
    return unowned;
  }
}
