import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crc32 } from 'node:zlib';
import { AenvError } from '@aenv/std';
import fc from 'fast-check';
import { decodeHeader, decodeIndex, encodeHeader, encodeIndex, fileLength, PAGE_SIZE, type Run } from './format.ts';
import { addressOf, parseMaps } from './mapping.ts';

/** Runs in order, with gaps that may be empty between those of another kind. */
const runs = fc
  .array(fc.record({ gap: fc.integer({ min: 0, max: 9 }), pages: fc.integer({ min: 1, max: 99 }), zero: fc.boolean() }))
  .map((parts) => {
    let next = 0;
    return parts.map(({ gap, pages, zero }): Run => {
      const firstPage = next + gap;
      next = firstPage + pages;
      return { firstPage, pages, zero };
    });
  });

function headerOf(list: Run[]) {
  const sum = (zero: boolean) => list.filter((run) => run.zero === zero).reduce((total, { pages }) => total + pages, 0);
  const last = list.at(-1);
  return {
    memoryBytes: ((last ? last.firstPage + last.pages : 0) + 1) * PAGE_SIZE,
    dataPages: sum(false),
    zeroPages: sum(true),
    runs: list.length,
    dataCrc: 0xfedcba98,
    indexCrc: crc32(encodeIndex(list)),
  };
}

test('what is encoded is decoded', () => {
  fc.assert(
    fc.property(runs, (list) => {
      const header = headerOf(list);
      assert.deepEqual(decodeHeader(encodeHeader(header)), header);
      assert.deepEqual(decodeIndex(encodeIndex(list), header), list);
    }),
  );
});

test('the bytes are those of the specification', () => {
  const list: Run[] = [
    { firstPage: 0x0102, pages: 3, zero: false },
    { firstPage: 0x0105, pages: 1, zero: true },
  ];
  assert.equal(
    encodeIndex(list).toString('hex'),
    '02010000000000000300000000000000' + '05010000000000000100000001000000',
  );
  const header = {
    memoryBytes: 1 << 28,
    dataPages: 3,
    zeroPages: 1,
    runs: 2,
    dataCrc: 0x11223344,
    indexCrc: 0x55667788,
  };
  const bytes = encodeHeader(header);
  assert.equal(
    bytes.toString('hex', 0, 60),
    '41454e564d44494601000000001000000000001000000000' +
      '030000000000000001000000000000000200000000000000' +
      '443322118877665500000000',
  );
  assert.equal(bytes.readUInt32LE(60), crc32(bytes.subarray(0, 60)));
  assert.equal(fileLength(header), 4096 + 3 * 4096 + 2 * 16);
});

test('a flipped bit in header or index is found', () => {
  fc.assert(
    fc.property(runs, fc.nat(), (list, position) => {
      const header = headerOf(list);
      const bytes = Buffer.concat([encodeHeader(header), encodeIndex(list)]);
      const bit = position % (bytes.length * 8);
      bytes.writeUInt8(bytes.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      const isDamaged = { code: 'restore_failed' };
      assert.throws(() => decodeIndex(bytes.subarray(64), decodeHeader(bytes.subarray(0, 64))), isDamaged);
    }),
  );
});

test('an index that lies is refused, whatever its checksum', () => {
  const check = (list: Run[], change: Partial<ReturnType<typeof headerOf>> = {}) =>
    assert.throws(() => decodeIndex(encodeIndex(list), { ...headerOf(list), ...change }), { code: 'restore_failed' });
  check([
    { firstPage: 5, pages: 2, zero: false },
    { firstPage: 6, pages: 1, zero: true },
  ]);
  check([
    { firstPage: 5, pages: 2, zero: false },
    { firstPage: 1, pages: 1, zero: false },
  ]);
  check([{ firstPage: 5, pages: 0, zero: false }]);
  check([{ firstPage: 5, pages: 2, zero: false }], { memoryBytes: 6 * PAGE_SIZE });
  check([{ firstPage: 5, pages: 2, zero: false }], { dataPages: 1 });
  check([{ firstPage: 5, pages: 2, zero: true }], { zeroPages: 3 });
});

test('bytes of any kind are refused with an error of ours', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      assert.throws(() => decodeHeader(Buffer.from(bytes)), AenvError);
    }),
  );
});

const MAPS = `55d0a0000000-55d0a0001000 r--p 00000000 fe:00 12                         /usr/bin/qemu
7f0000002000-7f0000004000 rw-p 00002000 fe:00 99                         /home/a b/memory
7f0000000000-7f0000002000 rw-p 00000000 fe:00 99                         /home/a b/memory
7f0000004000-7f0000005000 ---p 00000000 00:00 0 
`;

test('the mappings of a file are found by its whole path, in the order of its pages', () => {
  const found = parseMaps(MAPS, '/home/a b/memory');
  assert.deepEqual(found, [
    { address: 0x7f0000000000, length: 0x2000, firstPage: 0 },
    { address: 0x7f0000002000, length: 0x2000, firstPage: 2 },
  ]);
  assert.equal(addressOf(found, 3, 1), 0x7f0000003000);
  assert.equal(addressOf(found, 1, 2), undefined);
  assert.equal(addressOf(found, 4, 1), undefined);
  assert.throws(() => parseMaps(MAPS, '/home/a'), { code: 'bad_request' });
  assert.throws(() => parseMaps(MAPS.replaceAll('rw-p', 'rw-s'), '/home/a b/memory'), /shared/);
});
