/**
 * Writer for the archive that the kernel unpacks as its first root: cpio in the "newc" format
 * (Documentation/driver-api/early-userspace/buffer-format.rst in the kernel's sources).
 */

export type CpioEntry =
  | { kind: 'directory'; path: string; mode: number }
  | { kind: 'file'; path: string; mode: number; content: Uint8Array }
  | { kind: 'characterDevice'; path: string; mode: number; major: number; minor: number };

const TYPE_BITS = { directory: 0o040000, file: 0o100000, characterDevice: 0o020000 } as const;
const TRAILER = 'TRAILER!!!';
const HEADER_BYTES = 110;

/** The archive of `entries`, owned by root and dated 1970, so that equal input gives equal bytes. Paths have no leading /. */
export function cpioArchive(entries: readonly CpioEntry[]): Buffer {
  const parts = entries.flatMap((entry, index) => record(entry, index + 1));
  return Buffer.concat([...parts, ...record({ kind: 'file', path: TRAILER, mode: 0, content: new Uint8Array() }, 0)]);
}

function record(entry: CpioEntry, inode: number): Uint8Array[] {
  const name = Buffer.from(`${entry.path}\0`);
  const content = entry.kind === 'file' ? entry.content : new Uint8Array();
  const [major, minor] = entry.kind === 'characterDevice' ? [entry.major, entry.minor] : [0, 0];
  const mode = entry.path === TRAILER ? 0 : TYPE_BITS[entry.kind] | entry.mode;
  const links = entry.kind === 'directory' ? 2 : 1;
  // ino mode uid gid nlink mtime filesize devmajor devminor rdevmajor rdevminor namesize check
  const fields = [inode, mode, 0, 0, links, 0, content.length, 0, 0, major, minor, name.length, 0];
  const header = Buffer.from(`070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}`, 'latin1');
  return [header, name, padding(HEADER_BYTES + name.length), content, padding(content.length)];
}

/** Name and content each end on a multiple of four bytes. */
function padding(length: number): Uint8Array {
  return new Uint8Array((4 - (length % 4)) % 4);
}
