/** The first root of the guest: the guest daemon as /init and the modules that it loads, nothing else. */
import { readFile, stat } from 'node:fs/promises';
import { AenvError, isSystemError, writeFileAtomic } from '@aenv/std';
import { type CpioEntry, cpioArchive } from './cpio.ts';
import { type KernelModule, orderedModules } from './kernel-modules.ts';

export interface InitramfsParts {
  /** The guest daemon, a static binary. */
  aenvd: string;
  /** What tools/fetch-kernel.sh made. */
  kernelDir: string;
  /** File to write. */
  output: string;
}

/**
 * Writes the initramfs. It is not compressed, because an emulated guest takes longer to unpack it than to copy it.
 * Modules are `/lib/modules/ordered/NNN-NAME.ko`, to be loaded in the order of their names.
 */
export async function buildInitramfs({ aenvd, kernelDir, output }: InitramfsParts): Promise<void> {
  const [init, modules] = await Promise.all([readDaemon(aenvd), orderedModules(kernelDir)]);
  await writeFileAtomic(output, initramfs(init, modules));
}

/** The archive itself, for `init` as /init. */
export function initramfs(init: Uint8Array, modules: readonly KernelModule[]): Buffer {
  const directories = ['dev', 'proc', 'sys', 'lib', 'lib/modules', 'lib/modules/ordered'];
  return cpioArchive([
    ...directories.map((path): CpioEntry => ({ kind: 'directory', path, mode: 0o755 })),
    // The kernel opens it for the standard streams of /init.
    { kind: 'characterDevice', path: 'dev/console', mode: 0o600, major: 5, minor: 1 },
    ...modules.map(
      (module, index): CpioEntry => ({
        kind: 'file',
        path: `lib/modules/ordered/${String(index).padStart(3, '0')}-${module.name}.ko`,
        mode: 0o644,
        content: module.content,
      }),
    ),
    { kind: 'file', path: 'init', mode: 0o755, content: init },
  ]);
}

async function readDaemon(path: string): Promise<Buffer> {
  try {
    if ((await stat(path)).isFile()) return await readFile(path);
  } catch (error) {
    if (!isSystemError(error, 'ENOENT')) throw AenvError.from(error);
  }
  throw new AenvError('host_missing_tool', `the guest daemon ${path} is not built`, { remedy: 'Run: make setup' });
}
