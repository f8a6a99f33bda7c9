/** Extent trees of ext4: which blocks a file consists of. */
import { AenvError } from '@aenv/std';
import type { Inode } from './ext4-inode.ts';
import { damaged } from './source.ts';

const MAGIC = 0xf30a;
const HEADER_BYTES = 12;
const ENTRY_BYTES = 12;
const MAX_DEPTH = 5;
/** A longer run is one that is reserved and not written: it reads as zeros. */
const MAX_WRITTEN = 32_768;
/** A file of more runs is taken for damaged. */
const MAX_RUNS = 1 << 20;

export interface Run {
  /** First block of the file. */
  logical: number;
  blocks: number;
  /** First block of the file system. */
  physical: number;
  unwritten: boolean;
}

/** The runs of a file, ascending and apart. */
export async function parseExtents(file: Inode, read: (block: number) => Promise<Buffer>): Promise<Run[]> {
  if (file.size === 0 || file.inline) return [];
  if (file.map.readUInt16LE(0) !== MAGIC) {
    throw new AenvError('disk_unreadable', `inode ${file.number} is mapped in the old way, which is not read`);
  }
  const runs: Run[] = [];
  await descend(file.map, MAX_DEPTH + 1, read, runs);
  return runs;
}

async function descend(node: Buffer, above: number, read: (block: number) => Promise<Buffer>, runs: Run[]) {
  const entries = node.readUInt16LE(2);
  const depth = node.readUInt16LE(6);
  const fits = HEADER_BYTES + entries * ENTRY_BYTES <= node.length;
  if (node.readUInt16LE(0) !== MAGIC || !fits || depth >= above) damaged('the extents of a file are damaged');
  for (let entry = 0; entry < entries; entry += 1) {
    const at = HEADER_BYTES + entry * ENTRY_BYTES;
    if (depth === 0) addRun(runs, node, at);
    else await descend(await read(node.readUInt16LE(at + 8) * 2 ** 32 + node.readUInt32LE(at + 4)), depth, read, runs);
  }
}

function addRun(runs: Run[], node: Buffer, at: number): void {
  const logical = node.readUInt32LE(at);
  const length = node.readUInt16LE(at + 4);
  const unwritten = length > MAX_WRITTEN;
  const last = runs.at(-1);
  if (length === 0 || (last && last.logical + last.blocks > logical) || runs.length >= MAX_RUNS)
    damaged('the extents of a file are out of order');
  runs.push({
    logical,
    blocks: unwritten ? length - MAX_WRITTEN : length,
    physical: node.readUInt16LE(at + 6) * 2 ** 32 + node.readUInt32LE(at + 8),
    unwritten,
  });
}
