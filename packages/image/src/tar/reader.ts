/** A tar archive as a sequence of members, read once from front to back. */
import { ByteReader } from './bytes.ts';
import { BLOCK, padded, type TarEntry, tarError } from './entry.ts';
import { isZeroBlock, parseHeader, type RawHeader } from './header.ts';
import { type PaxOverrides, parsePax } from './pax.ts';

/** Names and extended headers beyond this are an attack on memory, not a file. */
const MAX_META_BYTES = 1 << 20;
const MAX_ID = 0xffff_fffe;

export interface TarMember {
  entry: TarEntry;
  /** Byte offset of the content in the archive. */
  offset: number;
  /** The content. What is not read is passed over when the next member is asked for. */
  content: AsyncIterable<Uint8Array>;
}

/** What headers before a member say about it. */
interface Pending {
  pax?: PaxOverrides;
  longName?: string;
  longLink?: string;
}

/**
 * Yields the members of the archive and reads `source` to its end, so that a hash over it is complete.
 * `image_invalid` for whatever is no well-formed archive; sparse files are refused.
 */
export async function* readTar(source: AsyncIterable<Uint8Array>): AsyncGenerator<TarMember> {
  const reader = new ByteReader(source);
  let pending: Pending = {};
  try {
    for (;;) {
      const block = await reader.read(BLOCK);
      if (block === undefined || isZeroBlock(block)) break;
      const header = parseHeader(block);
      if (await readMeta(reader, header, pending)) continue;
      const entry = combine(header, pending);
      pending = {};
      const offset = reader.position;
      yield { entry, offset, content: reader.take(entry.size) };
      await reader.skip(offset + padded(entry.size) - reader.position);
    }
    if (pending.pax || pending.longName || pending.longLink) throw tarError('it ends after an extended header');
    await reader.drain();
  } finally {
    await reader.close();
  }
}

/** Reads a header that belongs to the next member; false when `header` is a member itself. */
async function readMeta(reader: ByteReader, header: RawHeader, pending: Pending): Promise<boolean> {
  const { type, size } = header;
  if (type !== 'pax' && type !== 'pax-global' && type !== 'long-name' && type !== 'long-link') return false;
  if (size > MAX_META_BYTES) throw tarError('an extended header is larger than 1 MiB');
  const body = (await reader.read(padded(size)))?.subarray(0, size);
  if (body === undefined) throw tarError('it ends in the middle of a member');
  if (type === 'pax') pending.pax = parsePax(body);
  else if (type === 'long-name') pending.longName = untilNul(body);
  else if (type === 'long-link') pending.longLink = untilNul(body);
  // A global header holds defaults; those found in practice are comments.
  return true;
}

function combine(header: RawHeader, { pax, longName, longLink }: Pending): TarEntry {
  const path = pax?.path ?? longName ?? header.path;
  const type = header.type === 'file' && path.endsWith('/') ? 'directory' : (header.type as TarEntry['type']);
  const uid = pax?.uid ?? header.uid;
  const gid = pax?.gid ?? header.gid;
  if (uid > MAX_ID || gid > MAX_ID) throw tarError('a user or group id is out of range');
  return {
    path,
    type,
    mode: header.mode,
    uid,
    gid,
    mtime: pax?.mtime ?? header.mtime,
    // Only files have content; some tars write a size for the other kinds, without content.
    size: type === 'file' ? (pax?.size ?? header.size) : 0,
    link: type === 'symlink' || type === 'hardlink' ? (pax?.link ?? longLink ?? header.link) : '',
    major: header.major,
    minor: header.minor,
    xattrs: pax?.xattrs ?? NO_XATTRS,
  };
}

const NO_XATTRS: ReadonlyMap<string, string> = new Map();

function untilNul(body: Buffer): string {
  const end = body.indexOf(0);
  return body.toString('latin1', 0, end === -1 ? body.length : end);
}
