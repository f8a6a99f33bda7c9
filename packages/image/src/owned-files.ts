/**
 * Temporary files that name the process they belong to: `NAME.PID-STARTTICKS.part`. After a crash nobody has to guess
 * whether such a file is still in use, and what it holds can be taken over.
 */
import type { Stats } from 'node:fs';
import { readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isSystemError } from '@aenv/std';

const OWNED = /\.(\d+)-(\d+)(?:-\d+)?\.part$/;

let counter = 0;

/** A new name for a temporary file of this process, beside `path`. */
export async function ownedName(path: string): Promise<string> {
  counter += 1;
  // Taken before the wait, in which others may ask for names.
  const number = counter;
  return `${path}.${process.pid}-${await startTicks(process.pid)}-${number}.part`;
}

/**
 * Takes over a temporary file of `path` whose process has ended: renamed to `to` in one step, so only one process gets
 * it. False when there is none.
 */
export async function adoptAbandoned(path: string, to: string): Promise<boolean> {
  for (const candidate of await abandonedFiles(dirname(path))) {
    if (!candidate.startsWith(`${path}.`)) continue;
    try {
      await rename(candidate, to);
      return true;
    } catch (error) {
      if (!isSystemError(error, 'ENOENT')) throw error;
    }
  }
  return false;
}

/**
 * Removes the temporary files in `directory` whose processes have ended and that nobody has written to for
 * `olderThanMs` milliseconds. A directory that does not exist has none.
 */
export async function removeAbandoned(directory: string, olderThanMs = 0): Promise<void> {
  for (const file of await abandonedFiles(directory)) {
    const age = Date.now() - ((await statIfThere(file))?.mtimeMs ?? 0);
    if (age >= olderThanMs) await rm(file, { force: true });
  }
}

async function abandonedFiles(directory: string): Promise<string[]> {
  const abandoned: string[] = [];
  for (const name of await namesIn(directory)) {
    const [, pid, ticks] = OWNED.exec(name) ?? [];
    if (pid !== undefined && (await startTicks(Number(pid))) !== ticks) abandoned.push(join(directory, name));
  }
  return abandoned;
}

async function statIfThere(path: string): Promise<Stats | undefined> {
  return stat(path).catch((error: unknown) => {
    // Another process was faster.
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  });
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return [];
    throw error;
  }
}

/** Field 22 of /proc/PID/stat; with the pid it names a process uniquely until the next boot. */
async function startTicks(pid: number): Promise<string | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'latin1');
    // The command name is in parentheses and may hold spaces and parentheses itself.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}
