import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { AenvError } from '@aenv/std';
import fc from 'fast-check';
import type { ByteSource } from './index.ts';
import { DiskStack, Qcow2 } from './index.ts';

const SIZE = 8 << 20;
const RAW_SIZE = 5 << 20;
const FORMATS = ['cluster_size=64k,extended_l2=on', 'cluster_size=64k', 'cluster_size=4k,compat=0.10'];

const write = fc.record({
  what: fc.constantFrom('write', 'write -z', 'discard'),
  pattern: fc.integer({ min: 1, max: 255 }),
  offset: fc.nat(SIZE / 512 - 1).map((sector) => sector * 512),
  length: fc.integer({ min: 1, max: 600 }).map((sectors) => sectors * 512),
});
const layers = fc.array(fc.record({ format: fc.constantFrom(...FORMATS), writes: fc.array(write, { maxLength: 6 }) }), {
  minLength: 1,
  maxLength: 4,
});

async function withDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'aenv-disk-'));
  try {
    await work(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Runs qemu-io commands on a file. */
function perform(file: string, writes: { what: string; pattern: number; offset: number; length: number }[]): void {
  const commands = writes.flatMap(({ what, pattern, offset, length }) => {
    const bytes = Math.min(length, SIZE - offset);
    return ['-c', `${what}${what === 'write' ? ` -P ${pattern}` : ''} ${offset} ${bytes}`];
  });
  if (commands.length > 0)
    execFileSync('qemu-io', ['-f', 'qcow2', '-d', 'unmap', ...commands, file], { stdio: 'pipe' });
}

test('a stack of layers reads as QEMU reads it', async () => {
  await fc.assert(
    fc.asyncProperty(layers, fc.infiniteStream(fc.nat(255)), async (made, bytes) => {
      await withDirectory(async (directory) => {
        const raw = join(directory, 'base.raw');
        await writeFile(
          raw,
          Buffer.from([...bytes.take(4096)])
            .toString('latin1')
            .repeat(RAW_SIZE / 4096),
          'latin1',
        );
        const files = [raw];
        for (const [index, { format, writes }] of made.entries()) {
          const file = join(directory, `${index}.qcow2`);
          const base = ['-b', files.at(-1) as string, '-F', index === 0 ? 'raw' : 'qcow2'];
          execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-o', format, ...base, file, String(SIZE)]);
          perform(file, writes);
          files.push(file);
        }
        const flat = join(directory, 'flat.raw');
        execFileSync('qemu-img', ['convert', '-f', 'qcow2', '-O', 'raw', files.at(-1) as string, flat]);
        await using stack = await DiskStack.open(files);
        assert.equal(stack.size, SIZE);
        const expected = await readFile(flat);
        assert.ok((await stack.read(0, SIZE)).equals(expected));
        assert.ok((await stack.read(12_345, 70_001)).equals(expected.subarray(12_345, 12_345 + 70_001)));
      });
    }),
    { numRuns: 15 },
  );
});

/** Bytes in memory. */
function memory(bytes: Buffer): ByteSource {
  return {
    size: bytes.length,
    read: async (offset, length) => {
      if (offset + length > bytes.length) throw new AenvError('disk_unreadable', 'too short');
      return bytes.subarray(offset, offset + length);
    },
  };
}

test('a damaged file is an error of its own kind, and never read for ever', () =>
  withDirectory(async (directory) => {
    const file = join(directory, 'x.qcow2');
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-o', FORMATS[0] as string, file, String(SIZE)]);
    perform(file, [{ what: 'write', pattern: 7, offset: 0, length: 100_000 }]);
    const good = await readFile(file);
    const damage = fc.array(fc.tuple(fc.oneof(fc.nat(112), fc.nat(good.length - 1)), fc.nat(255)), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(damage, async (changes) => {
        const bytes = Buffer.from(good);
        for (const [at, value] of changes) bytes[at] = value;
        try {
          const layer = await Qcow2.open(memory(bytes));
          for (let offset = 0; offset < 1 << 20; ) {
            const extent = await layer.extentAt(offset, 65_536);
            assert.ok(extent.length > 0 && extent.length <= 65_536);
            if (extent.kind === 'data') await layer.read(extent.offset, extent.length);
            offset += extent.length;
          }
        } catch (error) {
          assert.ok(error instanceof AenvError && error.code === 'disk_unreadable', String(error));
        }
      }),
      { numRuns: 500 },
    );
  }));
