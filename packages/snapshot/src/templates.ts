/**
 * Templates on disk: a directory per build with the memory image, the device state, the sealed disk layer and an empty
 * layer to copy for each start. A build is staged under another name and appears in one rename.
 */
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Launcher } from '@aenv/linux';
import { AenvError, syncPath } from '@aenv/std';
import { cloneLayer, createLayer, type DiskFormat } from './disk.ts';
import type { Home } from './home.ts';
import { MANIFEST_VERSION, type MachineShape, readManifest, type TemplateManifest, writeManifest } from './manifest.ts';

const STAGING_PREFIX = '.staging-';

export interface TemplateFiles {
  directory: string;
  memory: string;
  state: string;
  disk: string;
  /** An empty layer over `disk`. */
  emptyLayer: string;
}

function filesIn(directory: string): TemplateFiles {
  return {
    directory,
    memory: join(directory, 'memory'),
    state: join(directory, 'state'),
    disk: join(directory, 'disk.qcow2'),
    emptyLayer: join(directory, 'empty.qcow2'),
  };
}

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

  /** Makes the staged files immutable and the build visible, in one step. */
  async publish(buildId: string, base: DiskBase, machine: MachineShape, now: number): Promise<void> {
    const staged = this.#staging(buildId);
    const final = this.files(buildId);
    for (const path of [staged.memory, staged.state, staged.disk]) await this.#launcher.seal(path);
    await createLayer(this.#launcher, {
      path: staged.emptyLayer,
      base: final.disk,
      baseFormat: 'qcow2',
      sizeMb: base.sizeMb,
    });
    for (const path of [staged.memory, staged.state, staged.disk, staged.emptyLayer]) await syncPath(path);
    await writeManifest(staged.directory, {
      version: MANIFEST_VERSION,
      kind: 'template',
      buildId,
      createdAt: now,
      machine,
      diskMb: base.sizeMb,
      diskParents: base.parents,
    });
    await rename(staged.directory, final.directory);
    await syncPath(this.#home.templates);
  }

  /** A private, empty disk over the template's, at `path`. */
  cloneDisk(buildId: string, path: string): Promise<void> {
    return cloneLayer(this.files(buildId).emptyLayer, path);
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
