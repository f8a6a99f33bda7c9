/** Writes what a stopped VM has changed in its memory since it was restored. */
import { closeSync, openSync, readSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { AenvError, isSystemError } from '@aenv/std';
import type { Home } from '../home.ts';
import type { MemoryDump } from '../launcher-api.ts';
import { DiffFile, PIECE } from './diff-file.ts';
import { PAGE_SIZE } from './format.ts';
import { changedRuns, findMappings, type Mapping } from './mapping.ts';

const ZERO_PAGE = Buffer.alloc(PAGE_SIZE);

/** See `Launcher.dumpMemory`. A failure leaves no file behind. */
export async function dumpMemory(
  home: Home,
  { pid, memoryFile, path, onRead }: { pid: number; memoryFile: string; path: string; onRead: () => void },
): Promise<MemoryDump> {
  const mappings = findMappings(pid, memoryFile);
  const diff = new DiffFile(home.createFile(path));
  try {
    await readChanges(pid, mappings, diff);
    onRead();
    const { size: memoryBytes } = await stat(memoryFile);
    return await diff.finish(memoryBytes);
  } catch (error) {
    await diff.abandon();
    await rm(path, { force: true });
    if (isSystemError(error, 'ESRCH') || isSystemError(error, 'EIO')) {
      throw new AenvError('snapshot_failed', `the memory of the VM cannot be read: ${error.message}`, { cause: error });
    }
    throw error;
  }
}

async function readChanges(pid: number, mappings: Mapping[], diff: DiffFile): Promise<void> {
  const pagemap = openSync(`/proc/${pid}/pagemap`, 'r');
  const memory = openSync(`/proc/${pid}/mem`, 'r');
  try {
    for (const mapping of mappings) await copyChanged(diff, pagemap, memory, mapping);
  } finally {
    closeSync(pagemap);
    closeSync(memory);
  }
}

async function copyChanged(diff: DiffFile, pagemap: number, memory: number, mapping: Mapping): Promise<void> {
  for (const [first, count] of changedRuns(pagemap, mapping)) {
    for (let done = 0; done < count; ) {
      if (diff.room === 0) {
        await diff.turn();
        // Other requests get their turn between two pieces.
        await nextTurn();
      }
      const pages = Math.min(count - done, diff.room / PAGE_SIZE);
      copy(diff, memory, mapping, first + done, pages);
      done += pages;
    }
  }
}

/** Reads pages to the end of the piece and keeps those that are not zero. */
function copy(diff: DiffFile, memory: number, mapping: Mapping, first: number, pages: number): void {
  const { piece } = diff;
  const target = PIECE - diff.room;
  readFully(memory, piece, target, pages * PAGE_SIZE, mapping.address + first * PAGE_SIZE);
  for (let page = 0; page < pages; page += 1) {
    const from = target + page * PAGE_SIZE;
    // Most pages differ from a zero page in their first byte already.
    const zero = piece[from] === 0 && ZERO_PAGE.compare(piece, from, from + PAGE_SIZE) === 0;
    diff.keep(mapping.firstPage + first + page, zero ? undefined : from);
  }
}

function readFully(file: number, buffer: Buffer, offset: number, length: number, position: number): void {
  for (let done = 0; done < length; ) {
    const count = readSync(file, buffer, offset + done, length - done, position + done);
    if (count === 0) throw new AenvError('snapshot_failed', 'the memory of the VM ended early: the VM is gone');
    done += count;
  }
}
