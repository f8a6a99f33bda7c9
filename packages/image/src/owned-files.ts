/**
 * Temporary files that name the process they belong to: `NAME.PID-STARTTICKS.part`. After a crash nobody has to guess
 * whether such a file is still in use, and what it holds can be taken over.
 */
import { readdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isSystemError } from '@aenv/std';

const OWNED = /\.(\d+)-(\d+)(?:-\d+)?\.part$/;

let counter = 0;

/** A new name for a temporary file of this process, beside `path`. */
export async function ownedName(path: string): Promise<string> {
  counter += 1;
  return `${path}.${process.pid}-${await startTicks(process.pid)}-${counter}.part`;
}

/**
 * Takes over a temporary file of `path` whose process has ended: renamed to `to` in one step, so only one process gets
 * it. False when there is none.
 */
export async function adoptAbandoned(path: string, to: string): Promise<boolean> {
  for (const candidate of await abandonedFiles(path)) {
    try {
      await rename(candidate, to);
      return true;
    } catch (error) {
      if (!isSystemError(error, 'ENOENT')) throw error;
    }
  }
  return false;
}

/** Removes the temporary files of `path` whose processes have ended. */
export async function removeAbandoned(path: string): Promise<void> {
  for (const file of await abandonedFiles(path)) await rm(file, { force: true });
}

async function abandonedFiles(path: string): Promise<string[]> {
  const prefix = `${basename(path)}.`;
  const names = (await readdir(dirname(path))).filter((name) => name.startsWith(prefix) && OWNED.test(name));
  const abandoned: string[] = [];
  for (const name of names) {
    const [, pid, ticks] = OWNED.exec(name) ?? [];
    if ((await startTicks(Number(pid))) !== ticks) abandoned.push(join(dirname(path), name));
  }
  return abandoned;
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
