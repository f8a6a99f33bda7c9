/** The end of a guest's console, as log entries. */
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { isSystemError } from '@aenv/std';
import type { LogEntry } from './engine.ts';

const TAIL_BYTES = 64 * 1024;

/** The last lines of the console of the VM in `directory`; none when it has not written any. */
export async function consoleTail(directory: string, timestamp: number): Promise<LogEntry[]> {
  const text = await readTail(join(directory, 'console.log'));
  return text
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '')
    .map((message) => ({ timestamp, level: 'debug', message, fields: { source: 'console' } }));
}

async function readTail(path: string): Promise<string> {
  try {
    await using file = await open(path);
    const { size } = await file.stat();
    const start = Math.max(0, size - TAIL_BYTES);
    const { buffer, bytesRead } = await file.read({
      buffer: Buffer.alloc(size - start),
      position: start,
      length: size - start,
    });
    return buffer.toString('utf8', 0, bytesRead);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return '';
    throw error;
  }
}
