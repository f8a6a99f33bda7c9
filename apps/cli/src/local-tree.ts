/**
 * Where downloaded files go. Names come from the sandbox, which is not trusted: nothing is ever written outside the
 * target, also not through a symbolic link that lies in it, and every file appears in one rename.
 */
import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { link, lstat, mkdir, rename, rm, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AenvError, isSystemError } from '@aenv/std';

/** Refuses what could leave the directory it is put into. */
export function checkedName(name: string): string {
  if (name === '' || name === '.' || name === '..' || /[/\0]/.test(name)) {
    throw new AenvError('forbidden', `the sandbox offers a file with the name ${JSON.stringify(name)}`, {
      remedy: 'It could be written outside the target, so nothing of this directory was fetched.',
    });
  }
  return name;
}

type Kind = 'file' | 'directory' | 'other';

/** Undefined when nothing is there. A symbolic link is `other`, wherever it points. */
export async function kindOf(path: string): Promise<Kind | undefined> {
  try {
    const info = await lstat(path);
    return info.isDirectory() ? 'directory' : info.isFile() ? 'file' : 'other';
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** Makes one directory below a trusted one. What is there and no directory is refused, a symbolic link too. */
export async function makeDirectory(path: string): Promise<void> {
  const kind = await kindOf(path);
  if (kind === 'directory') return;
  if (kind !== undefined) throw new AenvError('conflict', `${path} exists and is not a directory`);
  await mkdir(path);
}

function existsAlready(path: string): AenvError {
  return new AenvError('conflict', `${path} exists already`, { remedy: 'Replace it with --force.' });
}

/** Puts the finished file in its place; without `force` never over another one, even one that appeared meanwhile. */
async function publish(temporary: string, path: string, force: boolean): Promise<void> {
  if (force) return await rename(temporary, path);
  try {
    await link(temporary, path);
  } catch (error) {
    throw isSystemError(error, 'EEXIST') ? existsAlready(path) : error;
  }
  await unlink(temporary);
}

/** `mode`: permission bits; set-id bits are dropped. */
export async function writeFile(
  path: string,
  content: Readable,
  { mode, force }: { mode: number; force: boolean },
): Promise<void> {
  const kind = await kindOf(path);
  if (kind === 'directory') throw new AenvError('conflict', `${path} is a directory`);
  if (kind !== undefined && !force) throw existsAlready(path);
  const temporary = join(dirname(path), `.${basename(path).slice(0, 200)}.${randomBytes(6).toString('hex')}.part`);
  try {
    await pipeline(content, createWriteStream(temporary, { flags: 'wx', mode: mode & 0o777 }));
    await publish(temporary, path, force);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
