/**
 * The file of a memory diff, as spec/formats/memory-diff.md describes it: a header that is written last, the data of the
 * changed pages, and an index of runs. All numbers are little-endian.
 */
import { crc32 } from 'node:zlib';
import { AenvError } from '@aenv/std';

export const PAGE_SIZE = 4096;
/** The data starts here; a page of its own for the header keeps every page of data aligned. */
export const DATA_OFFSET = 4096;
export const HEADER_SIZE = 64;
export const RUN_SIZE = 16;
const MAGIC = 'AENVMDIF';
const VERSION = 1;

export interface DiffHeader {
  /** Bytes of the memory file that the diff belongs to. */
  memoryBytes: number;
  dataPages: number;
  zeroPages: number;
  runs: number;
  /** CRC-32 of the data and of the index. */
  dataCrc: number;
  indexCrc: number;
}

/** Consecutive pages; those of a zero run have no data in the file. */
export interface Run {
  /** Number of the first page, counted from the start of the memory file. */
  firstPage: number;
  pages: number;
  zero: boolean;
}

export function encodeHeader(header: DiffHeader): Buffer {
  const bytes = Buffer.alloc(HEADER_SIZE);
  bytes.write(MAGIC, 0, 'latin1');
  bytes.writeUInt32LE(VERSION, 8);
  bytes.writeUInt32LE(PAGE_SIZE, 12);
  bytes.writeBigUInt64LE(BigInt(header.memoryBytes), 16);
  bytes.writeBigUInt64LE(BigInt(header.dataPages), 24);
  bytes.writeBigUInt64LE(BigInt(header.zeroPages), 32);
  bytes.writeBigUInt64LE(BigInt(header.runs), 40);
  bytes.writeUInt32LE(header.dataCrc, 48);
  bytes.writeUInt32LE(header.indexCrc, 52);
  bytes.writeUInt32LE(crc32(bytes.subarray(0, 60)), 60);
  return bytes;
}

function invalid(why: string): never {
  throw new AenvError('restore_failed', `the memory diff is damaged: ${why}`);
}

/** Reads a header and checks it against itself; `restore_failed` when it is damaged or of another version. */
export function decodeHeader(bytes: Buffer): DiffHeader {
  if (bytes.length < HEADER_SIZE || bytes.toString('latin1', 0, 8) !== MAGIC) invalid('it has no header');
  if (crc32(bytes.subarray(0, 60)) !== bytes.readUInt32LE(60)) invalid('the checksum of its header is wrong');
  if (bytes.readUInt32LE(8) !== VERSION) invalid(`its version is ${bytes.readUInt32LE(8)}, not ${VERSION}`);
  if (bytes.readUInt32LE(12) !== PAGE_SIZE) invalid(`its pages have ${bytes.readUInt32LE(12)} bytes`);
  const size = (offset: number, max: number): number => {
    const value = bytes.readBigUInt64LE(offset);
    return value <= BigInt(max) ? Number(value) : invalid('a number in its header is out of range');
  };
  const memoryBytes = size(16, 2 ** 48);
  const allPages = memoryBytes / PAGE_SIZE;
  return {
    memoryBytes,
    dataPages: size(24, allPages),
    zeroPages: size(32, allPages),
    runs: size(40, allPages),
    dataCrc: bytes.readUInt32LE(48),
    indexCrc: bytes.readUInt32LE(52),
  };
}

/** Where the index starts. */
export function indexOffset(header: Pick<DiffHeader, 'dataPages'>): number {
  return DATA_OFFSET + header.dataPages * PAGE_SIZE;
}

/** Exact length of the file. */
export function fileLength(header: Pick<DiffHeader, 'dataPages' | 'runs'>): number {
  return indexOffset(header) + header.runs * RUN_SIZE;
}

export function encodeIndex(runs: Run[]): Buffer {
  const bytes = Buffer.alloc(runs.length * RUN_SIZE);
  runs.forEach(({ firstPage, pages, zero }, at) => {
    bytes.writeBigUInt64LE(BigInt(firstPage), at * RUN_SIZE);
    bytes.writeUInt32LE(pages, at * RUN_SIZE + 8);
    bytes.writeUInt32LE(zero ? 1 : 0, at * RUN_SIZE + 12);
  });
  return bytes;
}

/** Reads the index and checks it: runs in ascending order, apart, inside the memory, as many pages as the header says. */
export function decodeIndex(bytes: Buffer, header: DiffHeader): Run[] {
  if (bytes.length !== header.runs * RUN_SIZE) invalid('its index is cut off');
  if (crc32(bytes) !== header.indexCrc) invalid('the checksum of its index is wrong');
  const runs: Run[] = [];
  const counted = { data: 0, zero: 0 };
  let end = 0;
  for (let at = 0; at < bytes.length; at += RUN_SIZE) {
    const firstPage = Number(bytes.readBigUInt64LE(at));
    const pages = bytes.readUInt32LE(at + 8);
    const flags = bytes.readUInt32LE(at + 12);
    if (flags > 1 || pages === 0 || firstPage < end) invalid('its index is out of order');
    end = firstPage + pages;
    counted[flags === 1 ? 'zero' : 'data'] += pages;
    runs.push({ firstPage, pages, zero: flags === 1 });
  }
  if (end * PAGE_SIZE > header.memoryBytes) invalid('its index names pages outside the memory');
  if (counted.data !== header.dataPages || counted.zero !== header.zeroPages)
    invalid('its index has other page counts');
  return runs;
}
