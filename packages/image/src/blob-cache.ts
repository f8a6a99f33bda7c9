/**
 * Blobs by digest in a directory: `blobs/ALGORITHM/HEX`. A blob appears in one rename once its digest is right; what a
 * killed download leaves behind is taken up again by the next one.
 */
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isSystemError, Singleflight } from '@aenv/std';
import { digestMismatch, hasherFor, splitDigest } from './digest.ts';
import { adoptAbandoned, ownedName, removeAbandoned } from './owned-files.ts';
import type { StoredBlob } from './source.ts';

export interface WantedBlob {
  digest: string;
  /** Bytes. */
  size: number;
}

/** Writes the blob's bytes from `offset` on; must end with the file holding all of them, or throw. */
export type Download = (file: FileHandle, offset: number) => Promise<void>;

const ABANDONED_AFTER_MS = 24 * 60 * 60_000;

export class BlobCache {
  readonly #directory: string;
  readonly #running = new Singleflight<StoredBlob>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Removes what killed downloads have left and nobody has come back for within a day. */
  async prune(): Promise<void> {
    for (const directory of ['.', 'blobs/sha256', 'blobs/sha512']) {
      await removeAbandoned(join(this.#directory, directory), ABANDONED_AFTER_MS);
    }
  }

  /** The blob from the cache, or by way of `download`. Whatever is returned has the right digest. */
  get(blob: WantedBlob, what: string, download: Download): Promise<StoredBlob> {
    // Images often have the same (empty) layer several times.
    return this.#running.run(blob.digest, () => this.#get(blob, what, download));
  }

  async #get(blob: WantedBlob, what: string, download: Download): Promise<StoredBlob> {
    const { algorithm, hex } = splitDigest(blob.digest);
    const path = join(this.#directory, 'blobs', algorithm, hex);
    await mkdir(dirname(path), { recursive: true });
    const stored = { path, start: 0, size: blob.size };
    if (await this.#isIntact(stored, blob.digest)) return stored;
    await this.#downloadTo(path, blob, what, download);
    return stored;
  }

  /** A file that was damaged on this disk is removed, so that it is fetched again. */
  async #isIntact(stored: StoredBlob, digest: string): Promise<boolean> {
    const size = await fileSize(stored.path);
    if (size === undefined) return false;
    if (size === stored.size && (await hashFile(stored, digest)) === digest) return true;
    await rm(stored.path, { force: true });
    return false;
  }

  async #downloadTo(path: string, { digest, size }: WantedBlob, what: string, download: Download): Promise<void> {
    const temporary = await ownedName(path);
    if (!(await adoptAbandoned(path, temporary))) await (await open(temporary, 'wx', 0o600)).close();
    await using file = await open(temporary, 'r+');
    const here = (await file.stat()).size;
    const offset = here <= size ? here : 0;
    await file.truncate(offset);
    let actual = await downloadAndHash(file, temporary, { digest, size }, download, offset);
    // The fault may lie in what an earlier process left.
    if (actual !== digest && offset > 0) {
      await file.truncate(0);
      actual = await downloadAndHash(file, temporary, { digest, size }, download, 0);
    }
    if (actual === digest) return rename(temporary, path);
    await rm(temporary, { force: true });
    throw digestMismatch(what, digest, actual);
  }
}

/** When the download fails the file stays, and the next process continues from it, unless the disk is full. */
async function downloadAndHash(
  file: FileHandle,
  path: string,
  { digest, size }: WantedBlob,
  download: Download,
  offset: number,
): Promise<string> {
  try {
    await download(file, offset);
    await file.sync();
  } catch (error) {
    if (isSystemError(error, 'ENOSPC') || isSystemError(error, 'EDQUOT')) await rm(path, { force: true });
    throw error;
  }
  return hashFile({ path, start: 0, size }, digest);
}

async function fileSize(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** Digest of a part of a file, by the algorithm of `like`. */
export async function hashFile(
  { path, start, size }: StoredBlob,
  like: string,
  onBytes?: (completed: number) => void,
): Promise<string> {
  const hash = hasherFor(like);
  let completed = 0;
  if (size > 0) {
    for await (const chunk of createReadStream(path, { start, end: start + size - 1, highWaterMark: 1 << 18 })) {
      hash.update(chunk);
      completed += chunk.length;
      onBytes?.(completed);
    }
  }
  return `${splitDigest(like).algorithm}:${hash.digest('hex')}`;
}
