/** An inode of ext4: what a file is, and where its content is mapped. */

export type FileKind = 'file' | 'directory' | 'symlink' | 'other';

export interface Inode {
  number: number;
  kind: FileKind;
  /** Type and permission bits, as st_mode. */
  mode: number;
  uid: number;
  gid: number;
  /** Bytes. */
  size: number;
  /** Nanoseconds since the epoch; changes with every change of the inode or its content. */
  changedAt: bigint;
  /** Number of the device, for a device node. */
  device: number;
  /** The extent tree's root. */
  map: Buffer;
  /** Target of a short symbolic link. */
  inline?: Buffer;
}

const KINDS: Record<number, FileKind> = { 32768: 'file', 16384: 'directory', 40960: 'symlink' };
const EXTENTS_FLAG = 0x80000;
const MAP_OFFSET = 0x28;
const MAP_BYTES = 60;
/** An inode of 128 bytes has no more; larger ones say how much of the rest they use. */
const OLD_BYTES = 128;

export function parseInode(number: number, bytes: Buffer): Inode {
  const mode = bytes.readUInt16LE(0);
  const kind = KINDS[mode & 0xf000] ?? 'other';
  const map = bytes.subarray(MAP_OFFSET, MAP_OFFSET + MAP_BYTES);
  const size = bytes.readUInt32LE(4) + bytes.readUInt32LE(0x6c) * 2 ** 32;
  const hasExtents = (bytes.readUInt32LE(0x20) & EXTENTS_FLAG) !== 0;
  return {
    number,
    kind,
    mode,
    uid: bytes.readUInt16LE(2) + bytes.readUInt16LE(0x78) * 2 ** 16,
    gid: bytes.readUInt16LE(0x18) + bytes.readUInt16LE(0x7a) * 2 ** 16,
    size: Number.isSafeInteger(size) ? size : 0,
    changedAt: changedAt(bytes),
    device: kind === 'other' ? map.readUInt32LE(0) || map.readUInt32LE(4) : 0,
    map,
    ...(kind === 'symlink' && !hasExtents ? { inline: map } : {}),
  };
}

/** Seconds in 32 bits, and in newer inodes two bits of epoch and 30 of nanoseconds. */
function changedAt(bytes: Buffer): bigint {
  const seconds = BigInt(bytes.readInt32LE(0x0c));
  const hasExtra = bytes.length > OLD_BYTES && bytes.readUInt16LE(OLD_BYTES) >= 8;
  const extra = hasExtra ? BigInt(bytes.readUInt32LE(0x84)) : 0n;
  return (seconds + ((extra & 3n) << 32n)) * 1_000_000_000n + (extra >> 2n);
}
