/**
 * What the journal of an ext4 file system has that has not reached its place yet: a mount would write it there, we look
 * there first. Source of the format: "Journal (jbd2)" in the kernel's ext4 documentation. All numbers are big-endian.
 */
import { AenvError } from '@aenv/std';
import { damaged } from './source.ts';

const MAGIC = 0xc03b3998;
const HEADER_BYTES = 12;
const REVOKE_HEADER_BYTES = 16;
const UUID_BYTES = 16;
const TAIL_BYTES = 4;
const FEATURE = { revoke: 0x1, wide: 0x2, async: 0x4, csum2: 0x8, csum3: 0x10 };
const KNOWN_FEATURES = 0x1f;
const TAG = { escaped: 1, sameUuid: 2, last: 8 };
const KIND = { descriptor: 1, commit: 2, superblock1: 3, superblock2: 4, revoke: 5 };

/** Reads block `index` of the journal. */
export type ReadJournal = (index: number) => Promise<Buffer>;

/** A block of the file system as the journal has it. */
export interface Replayed {
  /** Block of the journal that holds it. */
  index: number;
  /** Its first four bytes are the magic number of the journal, and were written as zeros. */
  escaped: boolean;
}

interface Layout {
  blocks: number;
  first: number;
  sequence: number;
  start: number;
  features: number;
}

interface Transaction {
  sequence: number;
  writes: (Replayed & { block: number })[];
  revoked: number[];
}

/** By number of the block in the file system. Empty after a clean unmount. */
export async function readJournal(read: ReadJournal): Promise<Map<number, Replayed>> {
  const layout = parseSuperblock(await read(0));
  const transactions = layout.start === 0 ? [] : await committed(read, layout);
  const revokedAt = new Map<number, number>();
  for (const { sequence, revoked } of transactions) for (const block of revoked) revokedAt.set(block, sequence);
  const replayed = new Map<number, Replayed>();
  for (const { sequence, writes } of transactions) {
    for (const { block, ...rest } of writes) {
      if ((revokedAt.get(block) ?? -1) < sequence) replayed.set(block, rest);
    }
  }
  return replayed;
}

/** The content of an escaped block as it would be written to its place. */
export function withMagic(block: Buffer): Buffer {
  block.writeUInt32BE(MAGIC, 0);
  return block;
}

function parseSuperblock(block: Buffer): Layout {
  const kind = block.readUInt32BE(4);
  if (block.readUInt32BE(0) !== MAGIC || (kind !== KIND.superblock1 && kind !== KIND.superblock2))
    damaged('the journal of the file system has no superblock');
  const features = kind === KIND.superblock2 ? block.readUInt32BE(40) : 0;
  if ((features & ~KNOWN_FEATURES) !== 0) {
    throw new AenvError('disk_unreadable', `the journal has features 0x${features.toString(16)}, which are not read`);
  }
  const layout = {
    blocks: block.readUInt32BE(16),
    first: block.readUInt32BE(20),
    sequence: block.readUInt32BE(24),
    start: block.readUInt32BE(28),
    features,
  };
  if (layout.first < 1 || layout.first >= layout.blocks || layout.start >= layout.blocks)
    damaged('the journal of the file system has impossible bounds');
  return layout;
}

/** The transactions that have been committed, in their order. The journal is a ring. */
async function committed(read: ReadJournal, layout: Layout): Promise<Transaction[]> {
  const { first, blocks } = layout;
  const next = (index: number) => (index + 1 >= blocks ? first : index + 1);
  const done: Transaction[] = [];
  let open: Transaction = { sequence: layout.sequence, writes: [], revoked: [] };
  let index = layout.start;
  for (let seen = 0; seen < blocks; seen += 1) {
    const block = await read(index);
    if (block.readUInt32BE(0) !== MAGIC || block.readUInt32BE(8) !== open.sequence) break;
    const kind = block.readUInt32BE(4);
    index = next(index);
    if (kind === KIND.descriptor) {
      for (const tag of descriptorTags(block, layout.features)) {
        open.writes.push({ ...tag, index });
        index = next(index);
        seen += 1;
      }
    } else if (kind === KIND.revoke) {
      open.revoked.push(...revokedBlocks(block, layout.features));
    } else if (kind === KIND.commit) {
      done.push(open);
      open = { sequence: (open.sequence + 1) >>> 0, writes: [], revoked: [] };
    } else break;
  }
  return done;
}

/** The data blocks that follow a descriptor. */
function* descriptorTags(block: Buffer, features: number): Generator<{ block: number; escaped: boolean }> {
  const wide = (features & FEATURE.wide) !== 0;
  const csum3 = (features & FEATURE.csum3) !== 0;
  const csum2 = (features & FEATURE.csum2) !== 0;
  const size = csum3 ? 16 : (csum2 ? 14 : 12) - (wide ? 0 : 4);
  const end = block.length - (csum2 || csum3 ? TAIL_BYTES : 0);
  for (let at = HEADER_BYTES; at + size <= end; ) {
    const flags = csum3 ? block.readUInt32BE(at + 4) : block.readUInt16BE(at + 6);
    const high = wide ? block.readUInt32BE(at + 8) : 0;
    yield { block: high * 2 ** 32 + block.readUInt32BE(at), escaped: (flags & TAG.escaped) !== 0 };
    if ((flags & TAG.last) !== 0) return;
    at += size + ((flags & TAG.sameUuid) === 0 ? UUID_BYTES : 0);
  }
}

function revokedBlocks(block: Buffer, features: number): number[] {
  const wide = (features & FEATURE.wide) !== 0;
  const size = wide ? 8 : 4;
  const end = Math.min(block.readUInt32BE(HEADER_BYTES), block.length);
  const found: number[] = [];
  for (let at = REVOKE_HEADER_BYTES; at + size <= end; at += size)
    found.push(wide ? Number(block.readBigUInt64BE(at)) : block.readUInt32BE(at));
  return found;
}
