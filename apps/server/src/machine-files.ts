/**
 * Kernel and initramfs of new templates. They are kept below AENV_HOME under a name made from their content: a template
 * needs the very files that it was booted with for as long as it lives, whatever is installed meanwhile.
 */
import { createHash } from 'node:crypto';
import { chmod, copyFile, mkdir, mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { AenvError, isSystemError } from '@aenv/std';
import { buildInitramfs } from '@aenv/vmm';

const CHECKOUT = resolve(import.meta.dirname, '../../..');
/** Where tools/setup.sh puts them. */
export const DEFAULT_KERNEL_DIRECTORY = join(CHECKOUT, '.cache/kernel');
export const AENVD_BINARY = join(CHECKOUT, 'aenvd/bin/aenvd');

export interface MachineFiles {
  kernel: string;
  initramfs: string;
}

export interface MachineSources {
  home: string;
  /** Made by tools/fetch-kernel.sh. */
  kernelDirectory: string;
  /** The guest daemon, a static binary. */
  aenvd: string;
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return false;
    throw error;
  }
}

async function checkKernel(directory: string): Promise<void> {
  if (await exists(join(directory, 'vmlinuz'))) return;
  throw new AenvError('host_missing_tool', `there is no guest kernel in ${directory}`, {
    remedy: `Run: make setup (or tools/fetch-kernel.sh ${directory})`,
  });
}

async function contentName(files: string[]): Promise<string> {
  const hash = createHash('sha256');
  for (const file of files)
    hash.update(
      createHash('sha256')
        .update(await readFile(file))
        .digest(),
    );
  return hash.digest('hex').slice(0, 32);
}

/** `host_missing_tool` when kernel or guest daemon are not there; the remedy says how to get them. */
export async function installMachineFiles({ home, kernelDirectory, aenvd }: MachineSources): Promise<MachineFiles> {
  await checkKernel(kernelDirectory);
  const parent = join(home, 'machine');
  await mkdir(parent, { recursive: true, mode: 0o711 });
  const staged = await mkdtemp(join(parent, 'new-'));
  try {
    const files = ['vmlinuz', 'initramfs'].map((name) => join(staged, name));
    const [kernel = '', initramfs = ''] = files;
    await copyFile(join(kernelDirectory, 'vmlinuz'), kernel);
    await buildInitramfs({ aenvd, kernelDir: kernelDirectory, output: initramfs });
    // The virtual machine monitor reads them as a user without rights of its own.
    for (const file of files) await chmod(file, 0o444);
    await chmod(staged, 0o711);
    const directory = join(parent, await contentName(files));
    if (!(await exists(directory))) await rename(staged, directory);
    return { kernel: join(directory, 'vmlinuz'), initramfs: join(directory, 'initramfs') };
  } finally {
    await rm(staged, { recursive: true, force: true });
  }
}
