import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { crc32 } from 'node:zlib';
import { pollUntil } from '@aenv/std';
import { MEMORY_MB, missing, QEMU, World } from '../testing/world.ts';
import { encodeHeader, encodeIndex, PAGE_SIZE, type Run } from './format.ts';

const skip = missing(QEMU);
const MEMORY_BYTES = MEMORY_MB << 20;

/** A diff with these runs; data pages are filled with the low byte of their number. */
function diff(runs: Run[], memoryBytes = MEMORY_BYTES): Buffer {
  const pages = runs.flatMap(({ firstPage, pages, zero }) =>
    zero ? [] : Array.from({ length: pages }, (_, at) => Buffer.alloc(PAGE_SIZE, 1 + ((firstPage + at) % 255))),
  );
  const data = Buffer.concat(pages);
  const index = encodeIndex(runs);
  const count = (zero: boolean) => runs.filter((run) => run.zero === zero).reduce((sum, run) => sum + run.pages, 0);
  const header = encodeHeader({
    memoryBytes,
    dataPages: count(false),
    zeroPages: count(true),
    runs: runs.length,
    dataCrc: crc32(data),
    indexCrc: crc32(index),
  });
  return Buffer.concat([header, Buffer.alloc(PAGE_SIZE - header.length), data, index]);
}

/** Waits until QEMU listens, so that its memory is mapped. */
async function settled(directory: string): Promise<void> {
  await pollUntil('QMP', () => greets(join(directory, 'qmp.sock')), { intervalMs: 10, timeoutMs: 10_000 });
}

function greets(path: string): Promise<true | undefined> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('error', () => resolve(undefined));
    socket.once('data', () => {
      socket.destroy();
      resolve(true);
    });
  });
}

const digest = async (path: string) =>
  createHash('sha256')
    .update(await readFile(path))
    .digest('hex');

describe('guest memory', { skip }, () => {
  test('that a diff was written into is dumped as the same diff, and its file never changes', async () => {
    await using world = await World.make();
    const launcher = await world.start();
    const slot = await launcher.createSlot({ internet: false });
    const { memoryFile, ...request } = await world.vm('patched', slot.index);
    await launcher.spawnVm(request);
    await settled(request.directory);
    const before = await digest(memoryFile);
    const file = join(world.home, 'first');
    const clean = await launcher.dumpMemory('patched', memoryFile, file);

    // Above the first MiB, which QEMU itself fills with its firmware.
    const wanted: Run[] = [
      { firstPage: 512, pages: 1, zero: false },
      { firstPage: 600, pages: 3, zero: true },
      { firstPage: 603, pages: 1500, zero: false },
      { firstPage: 4095, pages: 1, zero: false },
    ];
    await writeFile(join(world.home, 'patch'), diff(wanted));
    await launcher.patchMemory('patched', memoryFile, join(world.home, 'patch'));
    const dump = await launcher.dumpMemory('patched', memoryFile, file);
    assert.deepEqual([dump.pages - clean.pages, dump.zeroPages - clean.zeroPages], [1505, 3]);
    assert.equal((await stat(file)).size, dump.fileBytes);
    assert.equal(await digest(memoryFile), before);

    await launcher.killVm('patched', 0);
    await launcher.spawnVm({ ...request, id: 'again' });
    await settled(request.directory);
    await launcher.patchMemory('again', memoryFile, file);
    await launcher.dumpMemory('again', memoryFile, join(world.home, 'second'));
    assert.equal(await digest(join(world.home, 'second')), await digest(file));
  });

  test('takes no damaged diff', async () => {
    await using world = await World.make();
    const launcher = await world.start();
    const slot = await launcher.createSlot({ internet: false });
    const { memoryFile, ...request } = await world.vm('strict', slot.index);
    await launcher.spawnVm(request);
    await settled(request.directory);
    const path = join(world.home, 'diff');
    const good = diff([{ firstPage: 700, pages: 2, zero: false }]);
    const flipped = (at: number) => {
      const copy = Buffer.from(good);
      copy.writeUInt8(copy.readUInt8(at) ^ 1, at);
      return copy;
    };
    const damaged = {
      empty: Buffer.alloc(0),
      'without a header': Buffer.concat([Buffer.alloc(64), good.subarray(64)]),
      'with another header': flipped(20),
      'with other data': flipped(5000),
      'with another index': flipped(good.length - 8),
      'cut off': good.subarray(0, good.length - 1),
      'of a larger memory': diff([{ firstPage: 700, pages: 1, zero: false }], 2 * MEMORY_BYTES),
      'outside the memory': diff([{ firstPage: 4095, pages: 2, zero: false }]),
    };
    for (const [name, bytes] of Object.entries(damaged)) {
      await writeFile(path, bytes);
      await assert.rejects(launcher.patchMemory('strict', memoryFile, path), { code: 'restore_failed' }, name);
    }
    await writeFile(path, good);
    await launcher.patchMemory('strict', memoryFile, path);
    await assert.rejects(launcher.patchMemory('strict', path, path), { code: 'bad_request' });
    await assert.rejects(launcher.patchMemory('nobody', memoryFile, path), { code: 'not_found' });
  });

  test('that is shared with its file is neither dumped nor patched', async () => {
    await using world = await World.make();
    const launcher = await world.start();
    const slot = await launcher.createSlot({ internet: false });
    const { memoryFile, ...request } = await world.vm('shared', slot.index);
    const argv = request.argv.map((word) => word.replace('share=off,readonly=on,rom=off', 'share=on'));
    await chmod(memoryFile, 0o600);
    await launcher.spawnVm({ ...request, argv, own: [memoryFile] });
    await settled(request.directory);
    const path = join(world.home, 'diff');
    await assert.rejects(launcher.dumpMemory('shared', memoryFile, path), { code: 'bad_request' });
    assert.equal(existsSync(path), false);
    await writeFile(path, diff([{ firstPage: 700, pages: 2, zero: false }]));
    await assert.rejects(launcher.patchMemory('shared', memoryFile, path), { code: 'bad_request' });
  });

  test('goes to no place that is not a new file below AENV_HOME', async () => {
    await using world = await World.make();
    const launcher = await world.start();
    const slot = await launcher.createSlot({ internet: false });
    const { memoryFile, ...request } = await world.vm('placed', slot.index);
    await launcher.spawnVm(request);
    await settled(request.directory);
    for (const path of ['/tmp/aenv-outside', `${world.home}/absent/x`, world.home, `${world.home}/vm`]) {
      await assert.rejects(launcher.dumpMemory('placed', memoryFile, path), `${path} was accepted`);
    }
    await truncate(await writtenFile(join(world.home, 'old')), 10);
    const { fileBytes } = await launcher.dumpMemory('placed', memoryFile, join(world.home, 'old'));
    assert.equal((await stat(join(world.home, 'old'))).size, fileBytes);
  });
});

async function writtenFile(path: string): Promise<string> {
  await writeFile(path, 'x'.repeat(100));
  return path;
}
