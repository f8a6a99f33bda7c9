/**
 * An ext4 file system, read-only and without mounting it: a guest may have written anything there. Source of the format:
 * the kernel's ext4 documentation ("Data Structures and Algorithms"). All numbers are little-endian.
 */
import { AenvError } from '@aenv/std';
import { parseExtents, type Run } from './ext4-extents.ts';
import { type Inode, parseInode } from './ext4-inode.ts';
import { type Replayed, readJournal, withMagic } from './journal.ts';
import { type ByteSource, damaged } from './source.ts';

const SUPERBLOCK_OFFSET = 1024;
const MAGIC = 0xef53;
const ROOT_INODE = 2;
const WIDE = 0x80;
const HAS_JOURNAL = 0x4;
/** filetype, recover, extents, 64bit, flex_bg, ea_inode, csum_seed, largedir; others change what we read. */
const KNOWN_INCOMPAT = 0x2 | 0x4 | 0x40 | WIDE | 0x200 | 0x400 | 0x2000 | 0x4000;
const FAST_COMMIT = 0x400;
/** A directory that is larger is taken for damaged. */
const MAX_DIRECTORY = 1 << 30;
const CACHED_BLOCKS = 4096;

interface Geometry {
  blockBytes: number;
  blocks: number;
  firstBlock: number;
  inodes: number;
  inodesPerGroup: number;
  inodeBytes: number;
  descriptorBytes: number;
  /** 0: there is none. */
  journalInode: number;
}

/** A block of a file's content. */
interface Part {
  /** Byte of the file that it begins with. */
  offset: number;
  data: Buffer;
}

export class Ext4 {
  readonly #source: ByteSource;
  readonly #geometry: Geometry;
  #replayed = new Map<number, Replayed>();
  #journal: Run[] = [];
  readonly #cache = new Map<number, Buffer>();
  /** Blocks of contents that have been read. */
  #contentRead = 0;

  private constructor(source: ByteSource, geometry: Geometry) {
    this.#source = source;
    this.#geometry = geometry;
  }

  /** `disk_unreadable` when it is no ext4 or has what we do not read. */
  static async open(source: ByteSource): Promise<Ext4> {
    const geometry = parseSuperblock(await source.read(SUPERBLOCK_OFFSET, 1024));
    const ext4 = new Ext4(source, geometry);
    if (geometry.journalInode !== 0) {
      ext4.#journal = await ext4.#runs(await ext4.inode(geometry.journalInode));
      ext4.#replayed = await readJournal((index) => ext4.#journalBlock(index));
      ext4.#cache.clear();
    }
    return ext4;
  }

  root(): Promise<Inode> {
    return this.inode(ROOT_INODE);
  }

  async inode(number: number): Promise<Inode> {
    const { inodes, inodesPerGroup, inodeBytes, blockBytes } = this.#geometry;
    if (number < 1 || number > inodes) damaged(`there is no inode ${number}`);
    const index = number - 1;
    const table = await this.#inodeTable(Math.floor(index / inodesPerGroup));
    const offset = (index % inodesPerGroup) * inodeBytes;
    const block = await this.#block(table + Math.floor(offset / blockBytes));
    const start = offset % blockBytes;
    return parseInode(number, block.subarray(start, start + inodeBytes));
  }

  /** Names and inode numbers, without `.` and `..`. */
  async entries(directory: Inode): Promise<Map<string, number>> {
    if (directory.size > MAX_DIRECTORY) damaged(`directory ${directory.number} has ${directory.size} bytes`);
    const found = new Map<string, number>();
    for await (const { data } of this.content(directory)) parseEntries(data, found);
    return found;
  }

  /** Where a symbolic link leads. */
  async target(link: Inode): Promise<string> {
    if (link.inline) return link.inline.toString('utf8', 0, Math.min(link.size, link.inline.length));
    const parts: Buffer[] = [];
    for await (const { data } of this.content(link)) parts.push(data);
    return Buffer.concat(parts).toString('utf8', 0, link.size);
  }

  /** The parts that are not holes, in their order; the last one is cut to the size. */
  async *content(file: Inode): AsyncGenerator<Part> {
    const { blockBytes, blocks } = this.#geometry;
    for (const run of await this.#runs(file)) {
      if (run.unwritten) continue;
      for (let at = 0; at < run.blocks; at += 1) {
        const offset = (run.logical + at) * blockBytes;
        if (offset >= file.size) return;
        // Each block belongs to one file. A guest can write something else, and have us read for ever.
        this.#contentRead += 1;
        if (this.#contentRead > 2 * blocks) damaged('files of the file system share their blocks');
        const data = await this.#block(run.physical + at);
        yield { offset, data: data.subarray(0, Math.min(blockBytes, file.size - offset)) };
      }
    }
  }

  /** Whether both files have the same bytes. Each may be of another file system, but one with blocks of the same size. */
  async sameContent(file: Inode, other: Ext4, otherFile: Inode): Promise<boolean> {
    if (file.size !== otherFile.size) return false;
    const [ours, theirs] = [this.content(file), other.content(otherFile)];
    let [one, two] = [await nextPart(ours), await nextPart(theirs)];
    while (one || two) {
      const offset = Math.min(one?.offset ?? Infinity, two?.offset ?? Infinity);
      const [mine, yours] = [one, two].map((part) => (part?.offset === offset ? part.data : undefined));
      if (!sameBytes(mine, yours)) return false;
      if (mine) one = await nextPart(ours);
      if (yours) two = await nextPart(theirs);
    }
    return true;
  }

  #runs(file: Inode): Promise<Run[]> {
    return parseExtents(file, (block) => this.#block(block));
  }

  async #inodeTable(group: number): Promise<number> {
    const { firstBlock, descriptorBytes, blockBytes } = this.#geometry;
    const offset = group * descriptorBytes;
    const block = await this.#block(firstBlock + 1 + Math.floor(offset / blockBytes));
    const at = offset % blockBytes;
    const high = descriptorBytes >= 64 ? block.readUInt32LE(at + 0x28) : 0;
    return high * 2 ** 32 + block.readUInt32LE(at + 8);
  }

  async #block(number: number): Promise<Buffer> {
    const { blocks } = this.#geometry;
    const cached = this.#cache.get(number);
    if (cached) return cached;
    if (number >= blocks) damaged(`block ${number} lies outside the file system`);
    const replayed = this.#replayed.get(number);
    const block = replayed ? await this.#replay(replayed) : await this.#rawBlock(number);
    if (this.#cache.size >= CACHED_BLOCKS) this.#cache.delete(this.#cache.keys().next().value as number);
    this.#cache.set(number, block);
    return block;
  }

  async #replay({ index, escaped }: Replayed): Promise<Buffer> {
    const block = await this.#journalBlock(index);
    return escaped ? withMagic(block) : block;
  }

  #rawBlock(number: number): Promise<Buffer> {
    const { blockBytes } = this.#geometry;
    return this.#source.read(number * blockBytes, blockBytes);
  }

  async #journalBlock(index: number): Promise<Buffer> {
    const physical = blockOf(
      this.#journal.find((run) => endOf(run) > index),
      index,
    );
    if (physical === undefined) return damaged(`the journal has no block ${index}`);
    return this.#rawBlock(physical);
  }
}

async function nextPart(parts: AsyncGenerator<Part>): Promise<Part | undefined> {
  const { value } = await parts.next();
  return value;
}

/** Undefined is a hole: zeros. */
function sameBytes(one: Buffer | undefined, two: Buffer | undefined): boolean {
  if (one && two) return one.equals(two);
  return (one ?? two)?.every((byte) => byte === 0) ?? true;
}

const endOf = (run: Run | undefined) => (run ? run.logical + run.blocks : 0);

function blockOf(run: Run | undefined, logical: number): number | undefined {
  if (!run || run.unwritten || logical < run.logical) return undefined;
  return run.physical + (logical - run.logical);
}

function parseSuperblock(bytes: Buffer): Geometry {
  if (bytes.readUInt16LE(0x38) !== MAGIC) damaged('the disk holds no ext4 file system');
  const incompat = bytes.readUInt32LE(0x60);
  const compat = bytes.readUInt32LE(0x5c);
  if ((incompat & ~KNOWN_INCOMPAT) !== 0 || (compat & FAST_COMMIT) !== 0) {
    throw new AenvError(
      'disk_unreadable',
      `the file system has features 0x${compat.toString(16)}/0x${incompat.toString(16)}, which are not read`,
    );
  }
  const logBlock = bytes.readUInt32LE(0x18);
  if (logBlock > 6) damaged(`the file system has blocks of 2^${logBlock + 10} bytes`);
  const wide = (incompat & WIDE) !== 0;
  const geometry = {
    blockBytes: 1024 << logBlock,
    blocks: bytes.readUInt32LE(4) + (wide ? bytes.readUInt32LE(0x150) * 2 ** 32 : 0),
    firstBlock: bytes.readUInt32LE(0x14),
    inodes: bytes.readUInt32LE(0),
    inodesPerGroup: bytes.readUInt32LE(0x28),
    inodeBytes: bytes.readUInt16LE(0x58),
    descriptorBytes: wide ? bytes.readUInt16LE(0xfe) : 32,
    journalInode: (compat & HAS_JOURNAL) === 0 ? 0 : bytes.readUInt32LE(0xe0),
  };
  const { inodeBytes, descriptorBytes, blockBytes, inodesPerGroup } = geometry;
  const fits = (size: number, least: number) => size >= least && size <= blockBytes && blockBytes % size === 0;
  if (!fits(inodeBytes, 128) || !fits(descriptorBytes, 32) || inodesPerGroup === 0)
    damaged('the superblock of the file system is impossible');
  return geometry;
}

function parseEntries(block: Buffer, into: Map<string, number>): void {
  for (let at = 0; at + 8 <= block.length; ) {
    const inode = block.readUInt32LE(at);
    const length = block.readUInt16LE(at + 4);
    const nameLength = block.readUInt8(at + 6);
    if (length < 8 || at + length > block.length || 8 + nameLength > length) damaged('a directory is damaged');
    const name = block.toString('utf8', at + 8, at + 8 + nameLength);
    if (inode !== 0 && name !== '.' && name !== '..' && nameLength > 0) into.set(name, inode);
    at += length;
  }
}
