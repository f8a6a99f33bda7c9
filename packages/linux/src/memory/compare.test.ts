import assert from 'node:assert/strict';
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { compareMemory, type SavedMemory } from './compare.ts';
import { DiffFile, PIECE } from './diff-file.ts';
import { PAGE_SIZE } from './format.ts';

/** What each page of a memory is filled with. */
const pages = fc.array(fc.nat(3), { minLength: 1, maxLength: 40 });
const changes = fc.option(fc.dictionary(fc.nat(39).map(String), fc.nat(3), { maxKeys: 20 }), { nil: undefined });

const bytesOf = (values: readonly number[]) => Buffer.concat(values.map((value) => Buffer.alloc(PAGE_SIZE, value)));

/** A diff with these pages, written as a pause writes it. */
async function writeDiff(path: string, own: Map<number, number>, total: number): Promise<void> {
  const diff = new DiffFile(open(path, 'w'));
  for (const [page, value] of [...own].sort(([one], [other]) => one - other)) {
    const from = PIECE - diff.room;
    diff.piece.fill(value, from, from + PAGE_SIZE);
    diff.keep(page, value === 0 ? undefined : from);
  }
  await diff.finish(total * PAGE_SIZE);
}

test('pages that differ are counted, whatever holds them', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'aenv-compare-'));
  let made = 0;
  const save = async (base: string, values: readonly number[], own: Record<string, number> | undefined) => {
    const now = [...values];
    if (!own) return { saved: { base } satisfies SavedMemory, now };
    const changed = new Map(
      Object.entries(own)
        .map(([page, value]): [number, number] => [Number(page), value])
        .filter(([page]) => page < values.length),
    );
    for (const [page, value] of changed) now[page] = value;
    made += 1;
    const diff = join(directory, `${made}.diff`);
    await writeDiff(diff, changed, values.length);
    return { saved: { base, diff } satisfies SavedMemory, now };
  };
  try {
    const other = fc.option(pages, { nil: undefined });
    await fc.assert(
      fc.asyncProperty(pages, other, changes, changes, async (first, second, ownOfFirst, ownOfSecond) => {
        const [one, two] = [join(directory, 'one'), join(directory, 'two')];
        await writeFile(one, bytesOf(first));
        if (second) await writeFile(two, bytesOf(second));
        const before = await save(one, first, ownOfFirst);
        const after = await save(second ? two : one, second ?? first, ownOfSecond);
        const most = Math.max(before.now.length, after.now.length);
        const changedPages = Array.from({ length: most }, (_, at) => before.now[at] !== after.now[at]);
        assert.deepEqual(await compareMemory(before.saved, after.saved), {
          changedPages: changedPages.filter(Boolean).length,
          pages: most,
        });
      }),
      { numRuns: 200 },
    );
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
