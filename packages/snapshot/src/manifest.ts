/** The manifests beside saved state: what the files are and what put them together. spec/formats/manifests.md. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError, type AtomicWriteOptions, isSystemError, writeFileAtomic } from '@aenv/std';

export const MANIFEST_VERSION = 2;
const MANIFEST_NAME = 'manifest.json';

/** How the machine was put together; a restore has to do the same. */
export interface MachineShape {
  driver: string;
  cpus: number;
  memoryMb: number;
  kernel: string;
  initramfs: string;
  kernelArguments: string[];
}

export interface TemplateManifest {
  version: typeof MANIFEST_VERSION;
  kind: 'template';
  buildId: string;
  createdAt: number;
  machine: MachineShape;
  /** Absent: only the disk was kept, and what starts from it boots. */
  memory?: MemoryImage;
  disk: DiskImage;
}

/** Guest RAM: a file that every VM maps privately, and the pages to write over the mapping. Absolute paths. */
export interface MemoryImage {
  base: string;
  /** Absent when the base is the memory itself. */
  diff?: string;
}

/** A sealed disk. Absolute paths. */
export interface DiskImage {
  path: string;
  /** Size of the disk as the guest sees it, MiB. */
  sizeMb: number;
  /** Files that it stands on, bottom first: image disk, then sealed layers. */
  parents: string[];
}

export interface PauseManifest {
  version: typeof MANIFEST_VERSION;
  kind: 'pause';
  sandboxId: string;
  createdAt: number;
  /** Absent: only the disk is kept, and the sandbox boots when it is resumed. */
  memory?: PausedMemory;
}

export interface PausedMemory {
  /** Absolute path of the file that the diff applies to. */
  base: string;
  /** Pages of 4 KiB in the diff. */
  pages: number;
  /** Bytes of each file: after a power cut, what has not reached the disk is shorter. */
  sizes: { state: number; memoryDiff: number };
}

/** What a VM is restored from. Absolute paths. */
export interface GuestState {
  memory: MemoryImage;
  /** Device state. */
  state: string;
}

export type Manifest = TemplateManifest | PauseManifest;

/** Written last: a directory with a manifest is complete. */
export async function writeManifest(
  directory: string,
  manifest: Manifest,
  options: AtomicWriteOptions = {},
): Promise<void> {
  await writeFileAtomic(join(directory, MANIFEST_NAME), `${JSON.stringify(manifest, null, 2)}\n`, options);
}

/** The manifest in `directory`, or undefined when there is none. A damaged or newer one is an error, never skipped. */
export async function readManifest<K extends Manifest['kind']>(
  directory: string,
  kind: K,
): Promise<Extract<Manifest, { kind: K }> | undefined> {
  let text: string;
  try {
    text = await readFile(join(directory, MANIFEST_NAME), 'utf8');
  } catch (error) {
    if (isSystemError(error, 'ENOENT') || isSystemError(error, 'ENOTDIR')) return undefined;
    throw error;
  }
  const manifest = parseManifest(text, directory);
  if (manifest.kind !== kind) throw new AenvError('internal', `${directory} holds a ${manifest.kind}, not a ${kind}`);
  return manifest as Extract<Manifest, { kind: K }>;
}

export function parseManifest(text: string, where: string): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new AenvError('internal', `the manifest in ${where} is not JSON`, { cause });
  }
  const manifest = value as Partial<Manifest> | null;
  if (
    manifest === null ||
    typeof manifest !== 'object' ||
    (manifest.kind !== 'template' && manifest.kind !== 'pause')
  ) {
    throw new AenvError('internal', `the manifest in ${where} is of no known kind`);
  }
  if (manifest.version !== MANIFEST_VERSION) {
    throw new AenvError(
      'internal',
      `the manifest in ${where} has version ${manifest.version}, this server reads ${MANIFEST_VERSION}`,
      {
        remedy: 'Start the version of the server that wrote it.',
      },
    );
  }
  return manifest as Manifest;
}
