/**
 * The 512-byte tar header: POSIX ustar, GNU's base-256 numbers, and what old tars wrote.
 * Sources: POSIX.1-2017 `pax` (ustar Interchange Format), the GNU tar manual (“Basic Tar Format”).
 */
import { BLOCK, type EntryType, tarError } from './entry.ts';

/** Header types that describe the next member instead of being one. */
export type MetaType = 'pax' | 'pax-global' | 'long-name' | 'long-link';

export interface RawHeader {
  type: EntryType | MetaType;
  path: string;
  mode: number;
  uid: number;
  gid: number;
  mtime: number;
  size: number;
  link: string;
  major: number;
  minor: number;
}

const TYPES: Record<string, EntryType | MetaType> = {
  '\0': 'file',
  '0': 'file',
  '7': 'file',
  '1': 'hardlink',
  '2': 'symlink',
  '3': 'character',
  '4': 'block',
  '5': 'directory',
  '6': 'fifo',
  x: 'pax',
  g: 'pax-global',
  L: 'long-name',
  K: 'long-link',
};

export function isZeroBlock(block: Buffer): boolean {
  return block.every((byte) => byte === 0);
}

/** Reads a header block; `image_invalid` when it is none, or one that cannot be represented. */
export function parseHeader(block: Buffer): RawHeader {
  checkSum(block);
  const flag = String.fromCharCode(block[156] ?? 0);
  if (flag === 'S') throw tarError('it holds a sparse file, which OCI layers must not');
  const type = TYPES[flag];
  if (type === undefined) throw tarError(`it holds a member of the unknown type ${JSON.stringify(flag)}`);
  const isPosix = block.toString('latin1', 257, 263) === 'ustar\0';
  const isGnu = block.toString('latin1', 257, 265) === 'ustar  \0';
  const prefix = isPosix ? cString(block, 345, 155) : '';
  const name = cString(block, 0, 100);
  const path = prefix === '' ? name : `${prefix}/${name}`;
  const isDevice = type === 'character' || type === 'block';
  return {
    // Before ustar a directory was a file whose name ends with a slash.
    type: type === 'file' && path.endsWith('/') ? 'directory' : type,
    path,
    mode: number(block, 100, 8, 'mode') & 0o7777,
    uid: number(block, 108, 8, 'user id'),
    gid: number(block, 116, 8, 'group id'),
    size: number(block, 124, 12, 'size'),
    mtime: number(block, 136, 12, 'time'),
    link: cString(block, 157, 100),
    major: isDevice && (isPosix || isGnu) ? number(block, 329, 8, 'device number') : 0,
    minor: isDevice && (isPosix || isGnu) ? number(block, 337, 8, 'device number') : 0,
  };
}

function checkSum(block: Buffer): void {
  const expected = number(block, 148, 8, 'checksum');
  let unsigned = 0;
  let signed = 0;
  for (let index = 0; index < BLOCK; index += 1) {
    const byte = index >= 148 && index < 156 ? 0x20 : (block[index] ?? 0);
    unsigned += byte;
    signed += byte > 127 ? byte - 256 : byte;
  }
  // Some old tars summed signed characters.
  if (expected !== unsigned && expected !== signed) throw tarError('a header has a wrong checksum');
}

function cString(block: Buffer, start: number, length: number): string {
  const field = block.toString('latin1', start, start + length);
  const end = field.indexOf('\0');
  return end === -1 ? field : field.slice(0, end);
}

/** Octal digits, or base-256 when the top bit of the first byte is set. */
function number(block: Buffer, start: number, length: number, what: string): number {
  if (((block[start] ?? 0) & 0x80) !== 0) return base256(block.subarray(start, start + length), what);
  const digits = block
    .toString('latin1', start, start + length)
    .replace(/[\0 ]+$/, '')
    .replace(/^[\0 ]+/, '');
  if (digits === '') return 0;
  if (!/^[0-7]+$/.test(digits)) throw tarError(`a header has a malformed ${what}`);
  return Number.parseInt(digits, 8);
}

function base256(field: Buffer, what: string): number {
  const isNegative = ((field[0] ?? 0) & 0x40) !== 0;
  let value = BigInt.asUintN(7, BigInt(field[0] ?? 0));
  for (const byte of field.subarray(1)) value = (value << 8n) | BigInt(byte);
  if (isNegative) value -= 1n << BigInt(field.length * 8 - 1);
  // Only a time may lie before its zero.
  if (isNegative && what !== 'time') throw tarError(`a header has a negative ${what}`);
  if (value > BigInt(Number.MAX_SAFE_INTEGER) || value < BigInt(Number.MIN_SAFE_INTEGER)) {
    throw tarError(`a header has an impossible ${what}`);
  }
  return Number(value);
}
