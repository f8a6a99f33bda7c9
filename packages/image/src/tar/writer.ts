/**
 * Tar headers for one reader: libarchive inside mke2fs.
 *
 * Long names travel in GNU headers, because libarchive takes their bytes as they are, while names in pax records are
 * converted from UTF-8 and fail where they are not. Only extended attributes need pax.
 */
import { BLOCK, type EntryType, padded, type TarEntry } from './entry.ts';

const FLAGS: Record<EntryType, string> = {
  file: '0',
  hardlink: '1',
  symlink: '2',
  character: '3',
  block: '4',
  directory: '5',
  fifo: '6',
};

/** Two empty blocks. */
export const TAR_END = Buffer.alloc(2 * BLOCK);

/** All header blocks of a member; its content follows, then `tarPadding`. */
export function tarHeader(entry: TarEntry): Buffer {
  const blocks: Buffer[] = [];
  if (entry.xattrs.size > 0) blocks.push(metaMember('x', paxBody(entry.xattrs)));
  if (entry.link.length > 100) blocks.push(metaMember('K', cText(entry.link)));
  if (entry.path.length > 100) blocks.push(metaMember('L', cText(entry.path)));
  blocks.push(headerBlock({ ...entry, flag: FLAGS[entry.type] }));
  return blocks.length === 1 ? (blocks[0] as Buffer) : Buffer.concat(blocks);
}

/** The zeros between the end of the content and the next header. */
export function tarPadding(size: number): Buffer {
  return Buffer.alloc(padded(size) - size);
}

function cText(text: string): Buffer {
  return Buffer.from(`${text}\0`, 'latin1');
}

function metaMember(flag: string, body: Buffer): Buffer {
  const header = headerBlock({
    flag,
    path: '././@LongLink',
    link: '',
    mode: 0o644,
    uid: 0,
    gid: 0,
    mtime: 0,
    size: body.length,
    major: 0,
    minor: 0,
  });
  return Buffer.concat([header, body, tarPadding(body.length)]);
}

function paxBody(xattrs: ReadonlyMap<string, string>): Buffer {
  const records = [...xattrs].map(([name, value]) => {
    const rest = ` SCHILY.xattr.${name}=${value}\n`;
    // The length counts its own digits.
    let length = rest.length + 1;
    while (length < rest.length + String(length).length) length += 1;
    return Buffer.from(`${length}${rest}`, 'latin1');
  });
  return Buffer.concat(records);
}

interface HeaderFields extends Omit<TarEntry, 'type' | 'xattrs'> {
  flag: string;
}

function headerBlock(fields: HeaderFields): Buffer {
  const block = Buffer.alloc(BLOCK);
  block.write(fields.path.slice(0, 100), 0, 'latin1');
  putNumber(block, 100, 8, fields.mode);
  putNumber(block, 108, 8, fields.uid);
  putNumber(block, 116, 8, fields.gid);
  putNumber(block, 124, 12, fields.size);
  putNumber(block, 136, 12, Math.max(0, fields.mtime));
  block.write(fields.flag, 156, 'latin1');
  block.write(fields.link.slice(0, 100), 157, 'latin1');
  block.write('ustar  \0', 257, 'latin1');
  putNumber(block, 329, 8, fields.major);
  putNumber(block, 337, 8, fields.minor);
  block.fill(0x20, 148, 156);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}

/** Octal where it fits, else base-256. */
function putNumber(block: Buffer, start: number, length: number, value: number): void {
  const digits = value.toString(8);
  if (digits.length < length) {
    block.write(digits.padStart(length - 1, '0'), start, 'latin1');
    return;
  }
  let rest = BigInt(value);
  for (let index = start + length - 1; index > start; index -= 1) {
    block[index] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  block[start] = 0x80;
}
