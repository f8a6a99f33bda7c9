/** Writing files so that a crash leaves either the old content or the new. */
import { randomBytes } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isSystemError } from './errors.ts';

export interface AtomicWriteOptions {
  /** Permission bits, 0o644 by default. */
  mode?: number;
  /** False: the file survives the death of a process, but not a power cut in the next seconds. True by default. */
  durable?: boolean;
}

/** Replaces `path` by `content` in one step, durable when it returns unless told otherwise. */
export async function writeFileAtomic(
  path: string,
  content: string | Uint8Array,
  { mode = 0o644, durable = true }: AtomicWriteOptions = {},
): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    await using file = await open(temporary, 'wx', mode);
    await file.writeFile(content);
    if (durable) await file.sync();
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await rename(temporary, path);
  if (durable) await syncPath(dirname(path));
}

/** Writes what the system holds of a file or directory to the disk. */
export async function syncPath(path: string): Promise<void> {
  await using handle = await open(path, 'r');
  await handle.sync();
}

/** The outcome of `work` on a file; undefined when the file does not exist. */
export async function ifThere<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  }
}
