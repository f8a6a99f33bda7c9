/**
 * One member of a tar archive.
 *
 * Names, link targets and attribute values are bytes in tar, in any encoding. They are kept as strings with one character
 * per byte (latin1), which compares and hashes quickly and loses nothing.
 */
import { AenvError } from '@aenv/std';

export const BLOCK = 512;

export type EntryType = 'file' | 'hardlink' | 'symlink' | 'character' | 'block' | 'directory' | 'fifo';

export interface TarEntry {
  /** One character per byte. */
  path: string;
  type: EntryType;
  /** Permission bits with set-user-id, set-group-id and sticky: 0 to 0o7777. */
  mode: number;
  uid: number;
  gid: number;
  /** Whole seconds since 1970. */
  mtime: number;
  /** Bytes of content; 0 for everything but a file. */
  size: number;
  /** Target of a symlink or hard link, one character per byte; else empty. */
  link: string;
  /** Device numbers; 0 for everything but a device. */
  major: number;
  minor: number;
  /** Extended attributes by name; the values are one character per byte. */
  xattrs: ReadonlyMap<string, string>;
}

/** Where `size` bytes of content end: the content is padded to whole blocks. */
export function padded(size: number): number {
  return Math.ceil(size / BLOCK) * BLOCK;
}

export function tarError(reason: string): AenvError {
  return new AenvError('image_invalid', `the tar archive is broken: ${reason}`, {
    remedy: 'The image is damaged or was made by a faulty tool: push it again, or pull from another source.',
  });
}

/** A name from an archive made fit for a message. */
export function shownName(bytes: string): string {
  const name = Buffer.from(bytes, 'latin1').toString('utf8');
  const cut = name.length > 200 ? `${name.slice(0, 200)}…` : name;
  return cut.replace(/[\p{Cc}\p{Cf}]/gu, '?');
}
