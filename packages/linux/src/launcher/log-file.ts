/** The console log of a VMM: the process appends to it by itself, so it goes on while no launcher runs. */
import type { FileHandle } from 'node:fs/promises';

const LIMIT = 1 << 20;
const KEPT = 256 << 10;

/** Cuts a log that has grown over 1 MiB down to its last 256 KiB. The writer appends, so it carries on at the new end. */
export async function trimLog(log: FileHandle): Promise<void> {
  const { size } = await log.stat();
  if (size <= LIMIT) return;
  const tail = await readTail(log, KEPT);
  await log.truncate(0);
  await log.write(`[the first ${size - tail.length} bytes were cut]\n${tail.toString('latin1')}`, null, 'latin1');
}

/** The last `length` bytes. */
export async function readTail(log: FileHandle, length: number): Promise<Buffer> {
  const { size } = await log.stat();
  const take = Math.min(size, length);
  const { buffer, bytesRead } = await log.read(Buffer.alloc(take), 0, take, size - take);
  return buffer.subarray(0, bytesRead);
}
