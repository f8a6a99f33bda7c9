/** qcow2 layers: made with qemu-img, off the request path; a start only copies an empty one. */
import { constants, copyFile } from 'node:fs/promises';
import type { Launcher } from '@aenv/linux';
import { AenvError } from '@aenv/std';

export type DiskFormat = 'raw' | 'qcow2';

export interface LayerRequest {
  /** Where the new, empty layer goes. */
  path: string;
  /** Absolute path that the layer will look its base up under; it need not exist yet. */
  base: string;
  baseFormat: DiskFormat;
  /** Size of the disk as the guest sees it, MiB. */
  sizeMb: number;
}

const QEMU_IMG_TIMEOUT_MS = 30_000;

/** Makes an empty layer over `base`. Sub-clusters, so that a small write does not copy 64 KiB from the base. */
export async function createLayer(launcher: Launcher, { path, base, baseFormat, sizeMb }: LayerRequest): Promise<void> {
  const args = [
    'create', '-q', '-u', '-f', 'qcow2',
    '-o', 'cluster_size=64k,extended_l2=on',
    '-b', base, '-F', baseFormat,
    path, `${sizeMb}M`,
  ]; // biome-ignore format: option and value belong together
  const result = await launcher.run({ tool: 'qemu-img', args, timeoutMs: QEMU_IMG_TIMEOUT_MS });
  if (result.code !== 0) throw new AenvError('internal', `qemu-img create failed: ${result.stderr.trim()}`);
}

/** A private copy of an empty layer (some 200 KiB); shares the blocks where the file system can. */
export async function cloneLayer(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
}
