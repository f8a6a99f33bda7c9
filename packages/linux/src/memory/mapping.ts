/** The mapping of a guest's memory file in its VMM, and which of its pages the guest has changed. */
import { readFileSync, readSync } from 'node:fs';
import { AenvError } from '@aenv/std';
import { PAGE_SIZE } from './format.ts';

/** A part of the memory file as the process sees it; the kernel may have cut one mapping into several. */
export interface Mapping {
  address: number;
  /** Bytes. */
  length: number;
  /** Page of the memory file that `address` shows. */
  firstPage: number;
}

/** Lines of /proc/PID/maps: address-address perms offset dev inode path. */
const LINE = /^([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) \S+ \d+\s+(.*)$/;

/** The private mappings of `memoryFile`, in the order of their pages; `bad_request` when there are none. */
export function findMappings(pid: number, memoryFile: string): Mapping[] {
  // From the kernel's memory: a trip to another thread would take longer than the reading.
  return parseMaps(readFileSync(`/proc/${pid}/maps`, 'utf8'), memoryFile);
}

export function parseMaps(maps: string, memoryFile: string): Mapping[] {
  const found: Mapping[] = [];
  for (const line of maps.split('\n')) {
    if (!line.endsWith(memoryFile)) continue;
    const match = LINE.exec(line);
    if (match?.[5] !== memoryFile) continue;
    const [, start = '', end = '', permissions = '', offset = ''] = match;
    if (permissions[3] !== 'p') {
      throw new AenvError('bad_request', `${memoryFile} is mapped shared: the VM writes into the file itself`);
    }
    const address = Number.parseInt(start, 16);
    found.push({
      address,
      length: Number.parseInt(end, 16) - address,
      firstPage: Number.parseInt(offset, 16) / PAGE_SIZE,
    });
  }
  if (found.length === 0) throw new AenvError('bad_request', `the VM has not mapped ${memoryFile}`);
  return found.sort((one, other) => one.firstPage - other.firstPage);
}

/** Address in the process of a run of pages; undefined when it is not mapped in one piece. */
export function addressOf(mappings: Mapping[], firstPage: number, pages: number): number | undefined {
  for (const { address, length, firstPage: start } of mappings) {
    const offset = (firstPage - start) * PAGE_SIZE;
    if (offset >= 0 && offset + pages * PAGE_SIZE <= length) return address + offset;
  }
  return undefined;
}

const ENTRY_SIZE = 8;
const ENTRIES_PER_READ = 65_536;

/**
 * The changed pages of a mapping, as runs of [first page of the mapping, count]. A page is the VM's own when it is
 * present or swapped out (bits 63, 62 of its pagemap entry) and not a page of the file (bit 61).
 */
export function* changedRuns(pagemap: number, mapping: Mapping): Generator<[first: number, count: number]> {
  const total = mapping.length / PAGE_SIZE;
  const buffer = Buffer.alloc(Math.min(total, ENTRIES_PER_READ) * ENTRY_SIZE);
  const words = new Uint32Array(buffer.buffer, buffer.byteOffset, buffer.length / 4);
  let start = -1;
  for (let done = 0; done < total; ) {
    const wanted = Math.min(total - done, ENTRIES_PER_READ) * ENTRY_SIZE;
    const position = (mapping.address / PAGE_SIZE + done) * ENTRY_SIZE;
    const entries = readSync(pagemap, buffer, 0, wanted, position) / ENTRY_SIZE;
    if (entries < 1) throw new AenvError('snapshot_failed', 'the page map ended early: the VM is gone');
    for (let at = 0; at < entries; at += 1) {
      // The upper half of the entry: bits 63, 62, 61 are 31, 30, 29 here.
      const changed = isPrivate(words[2 * at + 1] ?? 0);
      if (changed && start < 0) start = done + at;
      if (!changed && start >= 0) {
        yield [start, done + at - start];
        start = -1;
      }
    }
    done += entries;
  }
  if (start >= 0) yield [start, total - start];
}

function isPrivate(upper: number): boolean {
  const state = upper >>> 29;
  return (state & 0b110) !== 0 && (state & 0b001) === 0;
}
