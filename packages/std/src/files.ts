/** Writing files so that a crash leaves either the old content or the new. */
import { randomBytes } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

export interface AtomicWriteOptions {
  /** Permission bits, 0o644 by default. */
  mode?: number;
}

/** Replaces `path` by `content` in one step, durable when it returns. */
export async function writeFileAtomic(
  path: string,
  content: string | Uint8Array,
  { mode = 0o644 }: AtomicWriteOptions = {},
): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    await using file = await open(temporary, 'wx', mode);
    await file.writeFile(content);
    await file.sync();
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await rename(temporary, path);
  await using directory = await open(dirname(path), 'r');
  await directory.sync();
}
