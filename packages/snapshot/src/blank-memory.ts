/** Memory of machines that boot: all zero, mapped privately by any number of VMs. */
import { chmod, open, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ifThere, randomBase36 } from '@aenv/std';
import type { Home } from './home.ts';

/** The file of that size, made when it is the first of its kind. It takes no space. */
export async function blankMemory(home: Home, memoryMb: number): Promise<string> {
  const path = join(home.blankMemory, String(memoryMb));
  if (await ifThere(stat(path))) return path;
  const fresh = `${path}.${randomBase36(8)}`;
  {
    await using file = await open(fresh, 'w');
    await file.truncate(memoryMb * 2 ** 20);
  }
  await chmod(fresh, 0o444);
  await rename(fresh, path);
  return path;
}
