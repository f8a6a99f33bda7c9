/** How much of the memory of two saved states differs. */
import { type FileHandle, open } from 'node:fs/promises';
import { DATA_OFFSET, PAGE_SIZE, type Run } from './format.ts';
import { readIndex } from './patch.ts';

/** Guest RAM as it was saved: a file, and pages that differ from it. Absolute paths. */
export interface SavedMemory {
  base: string;
  diff?: string;
}

export interface MemoryDifference {
  changedPages: number;
  /** Of the larger one; pages are of 4 KiB. */
  pages: number;
}

const PIECE_PAGES = 1024;

/** Pages that one has and the other has not count as changed. */
export async function compareMemory(one: SavedMemory, two: SavedMemory): Promise<MemoryDifference> {
  await using before = await MemoryImage.open(one);
  await using after = await MemoryImage.open(two);
  const pages = Math.max(before.pages, after.pages);
  const shared = Math.min(before.pages, after.pages);
  const whole = [{ firstPage: 0, pages: shared }];
  // Over one base, only what either has changed can differ.
  const ranges = one.base === two.base ? [...before.ownRuns(), ...after.ownRuns()] : whole;
  let changedPages = pages - shared;
  for (const { firstPage, pages: count } of union(ranges)) {
    for (let done = 0; done < count; done += PIECE_PAGES) {
      const piece = Math.min(PIECE_PAGES, count - done);
      changedPages += await differing(before, after, firstPage + done, piece);
    }
  }
  return { changedPages, pages };
}

type Range = Pick<Run, 'firstPage' | 'pages'>;

/** The same pages, ascending and each once. */
function union(ranges: Range[]): Range[] {
  const merged: Range[] = [];
  for (const { firstPage, pages } of ranges.toSorted((one, other) => one.firstPage - other.firstPage)) {
    const last = merged.at(-1);
    if (last && firstPage <= last.firstPage + last.pages) {
      last.pages = Math.max(last.pages, firstPage + pages - last.firstPage);
    } else merged.push({ firstPage, pages });
  }
  return merged;
}

async function differing(one: MemoryImage, two: MemoryImage, firstPage: number, pages: number): Promise<number> {
  const [before, after] = await Promise.all([one.read(firstPage, pages), two.read(firstPage, pages)]);
  let count = 0;
  for (let at = 0; at < before.length; at += PAGE_SIZE)
    if (before.compare(after, at, at + PAGE_SIZE, at, at + PAGE_SIZE) !== 0) count += 1;
  return count;
}

/** A run of the diff, with where its data lies. */
interface Piece extends Run {
  offset: number;
}

class MemoryImage {
  readonly pages: number;
  readonly #base: FileHandle;
  readonly #diff: FileHandle | undefined;
  readonly #pieces: Piece[];

  private constructor(base: FileHandle, diff: FileHandle | undefined, pages: number, pieces: Piece[]) {
    this.#base = base;
    this.#diff = diff;
    this.pages = pages;
    this.#pieces = pieces;
  }

  static async open({ base: path, diff: diffPath }: SavedMemory): Promise<MemoryImage> {
    const base = await open(path, 'r');
    let diff: FileHandle | undefined;
    try {
      diff = diffPath === undefined ? undefined : await open(diffPath, 'r');
      const runs = diff ? (await readIndex(diff)).runs : [];
      return new MemoryImage(base, diff, (await base.stat()).size / PAGE_SIZE, located(runs));
    } catch (error) {
      await diff?.close();
      await base.close();
      throw error;
    }
  }

  /** Pages that are not those of the base. */
  ownRuns(): Range[] {
    return this.#pieces;
  }

  async read(firstPage: number, pages: number): Promise<Buffer> {
    const buffer = Buffer.alloc(pages * PAGE_SIZE);
    await this.#base.read(buffer, 0, buffer.length, firstPage * PAGE_SIZE);
    const end = firstPage + pages;
    for (const piece of this.#pieces) {
      const [from, to] = [Math.max(firstPage, piece.firstPage), Math.min(end, piece.firstPage + piece.pages)];
      if (from >= to) continue;
      const [start, length] = [(from - firstPage) * PAGE_SIZE, (to - from) * PAGE_SIZE];
      if (piece.zero) buffer.fill(0, start, start + length);
      else await this.#diff?.read(buffer, start, length, piece.offset + (from - piece.firstPage) * PAGE_SIZE);
    }
    return buffer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#diff?.close();
    await this.#base.close();
  }
}

function located(runs: Run[]): Piece[] {
  let offset = DATA_OFFSET;
  return runs.map((run) => {
    const piece = { ...run, offset };
    if (!run.zero) offset += run.pages * PAGE_SIZE;
    return piece;
  });
}
