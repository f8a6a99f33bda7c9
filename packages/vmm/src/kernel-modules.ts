/** Which modules a guest loads, and in which order. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError, isSystemError } from '@aenv/std';

/** Without these there is no disk and no network. */
const REQUIRED = ['virtio_mmio', 'virtio_blk', 'virtio_net', 'ext4'];
/** Entropy for the guest, and what programs in a sandbox commonly ask for. Absent ones are left out. */
const OPTIONAL = ['virtio_rng', 'overlay', 'fuse', 'af_packet'];

export interface KernelModule {
  /** Name with underscores. */
  name: string;
  content: Buffer;
}

/**
 * The modules of a directory made by tools/fetch-kernel.sh, each after those that it depends on.
 * `host_missing_tool` when something needed is neither there nor built in.
 */
export async function orderedModules(kernelDir: string): Promise<KernelModule[]> {
  const available = await readModules(kernelDir);
  const builtin = await readBuiltin(kernelDir);
  const ordered = new Map<string, KernelModule>();

  const add = (name: string, required: boolean, above: string[]): void => {
    if (ordered.has(name) || builtin.has(name)) return;
    if (above.includes(name))
      throw incomplete(kernelDir, `modules depend on each other: ${[...above, name].join(' → ')}`);
    const content = available.get(name);
    if (!content) {
      if (required) throw incomplete(kernelDir, `the module ${name} is missing`);
      return;
    }
    for (const dependency of moduleDependencies(content)) add(dependency, true, [...above, name]);
    ordered.set(name, { name, content });
  };
  for (const name of REQUIRED) add(name, true, []);
  for (const name of OPTIONAL) add(name, false, []);
  return [...ordered.values()];
}

function readModules(kernelDir: string): Promise<Map<string, Buffer>> {
  const directory = join(kernelDir, 'modules');
  return reading(kernelDir, directory, async () => {
    const files = (await readdir(directory)).filter((file) => file.endsWith('.ko'));
    const pairs = files.map(async (file) => [moduleName(file), await readFile(join(directory, file))] as const);
    return new Map(await Promise.all(pairs));
  });
}

function readBuiltin(kernelDir: string): Promise<Set<string>> {
  const file = join(kernelDir, 'modules.builtin');
  return reading(kernelDir, file, async () => parseBuiltin(await readFile(file, 'utf8')));
}

async function reading<T>(kernelDir: string, path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) throw incomplete(kernelDir, `${path} does not exist`);
    throw AenvError.from(error);
  }
}

function incomplete(kernelDir: string, message: string): AenvError {
  return new AenvError('host_missing_tool', `the guest kernel in ${kernelDir} is incomplete: ${message}`, {
    remedy: `Fetch it again: rm -r ${kernelDir} && tools/fetch-kernel.sh ${kernelDir}`,
  });
}

function moduleName(path: string): string {
  const file = path.slice(path.lastIndexOf('/') + 1);
  return file.replace(/\.ko$/, '').replaceAll('-', '_');
}

/** Names in a `modules.builtin`, which lists one path such as kernel/fs/ext4/ext4.ko a line. */
export function parseBuiltin(text: string): Set<string> {
  return new Set(text.split('\n').filter(Boolean).map(moduleName));
}

/**
 * Names of the modules that a module needs, from its section `.modinfo`: NUL-terminated KEY=VALUE texts, of which
 * `depends` is a list with commas. depmod makes modules.dep from the same data.
 */
export function moduleDependencies(content: Buffer): string[] {
  const key = '\0depends=';
  const at = content.indexOf(key, 0, 'latin1');
  if (at < 0) return [];
  const start = at + key.length;
  const value = content.toString('latin1', start, content.indexOf(0, start));
  return value.split(',').filter(Boolean).map(moduleName);
}
