/**
 * One qcow2 file, read-only: what it holds itself, without the file that it stands on. Source of the format:
 * docs/interop/qcow2.rst of QEMU (header, two-level tables, extended L2 entries). All numbers are big-endian.
 */
import { AenvError } from '@aenv/std';
import { type ByteSource, damaged } from './source.ts';

const MAGIC = 0x51_46_49_fb;
/** Dirty and lazy refcounts do not matter to a reader; extended L2 entries we read; all else would be misread. */
const KNOWN_FEATURES = 0x1n | 0x10n;
const EXTENDED_L2 = 0x10n;
const OFFSET_MASK = 0x00ff_ffff_ffff_fe00n;
const COMPRESSED = 1n << 62n;
const ALL_ZERO = 1n;
const SUBCLUSTERS = 32;
/** An L1 table of this many entries maps 2 TiB. */
const MAX_L1_ENTRIES = 1 << 16;

/** What a file says about a range of the disk. `offset` is where the data lies in the file. */
export type Extent =
  | { kind: 'data'; offset: number; length: number }
  | { kind: 'zero'; length: number }
  | { kind: 'absent'; length: number };

interface Geometry {
  /** Bytes of the disk. */
  size: number;
  clusterBytes: number;
  entryBytes: 8 | 16;
  l1: Buffer;
}

export class Qcow2 {
  readonly #source: ByteSource;
  readonly #geometry: Geometry;
  /** Second-level tables by where they lie in the file. */
  readonly #tables = new Map<number, Buffer>();

  private constructor(source: ByteSource, geometry: Geometry) {
    this.#source = source;
    this.#geometry = geometry;
  }

  /** `disk_unreadable` when it is no qcow2 file or has what we do not read. */
  static async open(source: ByteSource): Promise<Qcow2> {
    return new Qcow2(source, await readGeometry(source));
  }

  /** Bytes of the disk. */
  get size(): number {
    return this.#geometry.size;
  }

  read(offset: number, length: number): Promise<Buffer> {
    return this.#source.read(offset, length);
  }

  /** What is at `offset`: an extent of 1 to `length` bytes. */
  async extentAt(offset: number, length: number): Promise<Extent> {
    const { clusterBytes, entryBytes, size } = this.#geometry;
    if (offset >= size) return { kind: 'absent', length };
    const inCluster = offset % clusterBytes;
    const unit = entryBytes === 16 ? clusterBytes / SUBCLUSTERS : clusterBytes;
    const cut = Math.min(length, unit - (inCluster % unit));
    const entry = await this.#entryAt(Math.floor(offset / clusterBytes));
    if (!entry) return { kind: 'absent', length: Math.min(length, clusterBytes - inCluster) };
    if ((entry.word & COMPRESSED) !== 0n) throw unsupported('compressed clusters');
    const kind =
      entryBytes === 16 ? subclusterKind(entry.bitmap, Math.floor(inCluster / unit)) : clusterKind(entry.word);
    if (kind !== 'data') return { kind, length: cut };
    return { kind, length: cut, offset: Number(entry.word & OFFSET_MASK) + inCluster };
  }

  /** The entry of a cluster; undefined when the file has no table for it. */
  async #entryAt(cluster: number): Promise<{ word: bigint; bitmap: bigint } | undefined> {
    const { clusterBytes, entryBytes, l1 } = this.#geometry;
    const perTable = clusterBytes / entryBytes;
    const at = Math.floor(cluster / perTable) * 8;
    if (at + 8 > l1.length) damaged('the qcow2 file has too small a table');
    const tableOffset = Number(l1.readBigUInt64BE(at) & OFFSET_MASK);
    if (tableOffset === 0) return undefined;
    const table = await this.#table(tableOffset);
    const position = (cluster % perTable) * entryBytes;
    return {
      word: table.readBigUInt64BE(position),
      bitmap: entryBytes === 16 ? table.readBigUInt64BE(position + 8) : 0n,
    };
  }

  async #table(offset: number): Promise<Buffer> {
    const known = this.#tables.get(offset);
    if (known) return known;
    const table = await this.#source.read(offset, this.#geometry.clusterBytes);
    this.#tables.set(offset, table);
    return table;
  }
}

async function readGeometry(source: ByteSource): Promise<Geometry> {
  const header = await source.read(0, 104);
  if (header.readUInt32BE(0) !== MAGIC) damaged('the file is no qcow2 file');
  const version = header.readUInt32BE(4);
  if (version !== 2 && version !== 3) throw unsupported(`version ${version}`);
  const features = version === 3 ? header.readBigUInt64BE(72) : 0n;
  if ((features & ~KNOWN_FEATURES) !== 0n) throw unsupported(`features 0x${features.toString(16)}`);
  if (header.readUInt32BE(32) !== 0) throw unsupported('encryption');
  const clusterBits = header.readUInt32BE(20);
  if (clusterBits < 9 || clusterBits > 21) damaged(`the qcow2 file has clusters of 2^${clusterBits} bytes`);
  const size = Number(header.readBigUInt64BE(24));
  const clusterBytes = 2 ** clusterBits;
  const entryBytes = (features & EXTENDED_L2) === 0n ? 8 : 16;
  const entries = header.readUInt32BE(36);
  if (entries > MAX_L1_ENTRIES || entries * (clusterBytes / entryBytes) * clusterBytes < size)
    damaged(`the qcow2 file has a table of ${entries} entries for ${size} bytes`);
  const l1 = await source.read(Number(header.readBigUInt64BE(40)), entries * 8);
  return { size, clusterBytes, entryBytes, l1 };
}

/** Of a file without subclusters. */
function clusterKind(word: bigint): Extent['kind'] {
  if ((word & ALL_ZERO) !== 0n) return 'zero';
  return (word & OFFSET_MASK) === 0n ? 'absent' : 'data';
}

/** The lower half of the bitmap says what is allocated, the upper half what reads as zeros. */
function subclusterKind(bitmap: bigint, index: number): Extent['kind'] {
  if (((bitmap >> BigInt(index + SUBCLUSTERS)) & 1n) !== 0n) return 'zero';
  return ((bitmap >> BigInt(index)) & 1n) === 0n ? 'absent' : 'data';
}

const unsupported = (what: string) => new AenvError('disk_unreadable', `the qcow2 file has ${what}, which is not read`);
