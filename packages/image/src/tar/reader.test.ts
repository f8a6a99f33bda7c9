import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { AenvError } from '@aenv/std';
import { packTar } from '@aenv/testkit';
import fc from 'fast-check';
import type { EntryType, TarEntry } from './entry.ts';
import { readTar } from './reader.ts';
import { TAR_END, tarHeader, tarPadding } from './writer.ts';

interface Read {
  entry: TarEntry;
  content: Buffer;
}

async function readAll(archive: Uint8Array, chunkBytes = archive.length): Promise<Read[]> {
  const members: Read[] = [];
  for await (const { entry, content } of readTar(chunked(archive, chunkBytes))) {
    const parts: Uint8Array[] = [];
    for await (const part of content) parts.push(part);
    members.push({ entry, content: Buffer.concat(parts) });
  }
  return members;
}

async function* chunked(bytes: Uint8Array, chunkBytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
}

const isBroken = (pattern: RegExp) => (error: unknown) =>
  error instanceof AenvError && error.code === 'image_invalid' && pattern.test(error.message);

const byteText = (maxLength: number) =>
  fc
    .uint8Array({ minLength: 1, maxLength })
    .map((bytes) => Buffer.from(bytes).toString('latin1').replaceAll('\0', 'x'));

const member = fc
  .record({
    path: byteText(400).map((path) => path.replace(/\/+$/, 'y')),
    type: fc.constantFrom<EntryType>('file', 'hardlink', 'symlink', 'character', 'block', 'directory', 'fifo'),
    mode: fc.integer({ min: 0, max: 0o7777 }),
    uid: fc.integer({ min: 0, max: 0xffff_fffe }),
    gid: fc.integer({ min: 0, max: 0xffff_fffe }),
    mtime: fc.integer({ min: 0, max: 2 ** 40 }),
    link: byteText(300),
    major: fc.integer({ min: 0, max: 4095 }),
    minor: fc.integer({ min: 0, max: 0xfffff }),
    xattrs: fc.array(fc.tuple(fc.constantFrom('user.a', 'security.capability', 'user.b'), byteText(60)), {
      maxLength: 3,
    }),
    content: fc.uint8Array({ maxLength: 2000 }),
  })
  .map((entry) => ({ ...entry, xattrs: new Map(entry.xattrs) }));

test('what the writer writes the reader reads, however the stream is cut', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(member, { maxLength: 4 }), fc.integer({ min: 1, max: 2000 }), async (members, cut) => {
      const parts = members.flatMap(({ content, ...entry }) => {
        const size = entry.type === 'file' ? content.length : 0;
        return [tarHeader({ ...entry, size }), content.subarray(0, size), tarPadding(size)];
      });
      const read = await readAll(Buffer.concat([...parts, TAR_END]), cut);
      assert.equal(read.length, members.length);
      members.forEach((expected, index) => {
        const { entry, content } = read[index] as Read;
        const isDevice = expected.type === 'character' || expected.type === 'block';
        const isLink = expected.type === 'symlink' || expected.type === 'hardlink';
        assert.deepEqual(
          { ...entry, content },
          {
            ...expected,
            size: expected.type === 'file' ? expected.content.length : 0,
            link: isLink ? expected.link : '',
            major: isDevice ? expected.major : 0,
            minor: isDevice ? expected.minor : 0,
            content: Buffer.from(expected.type === 'file' ? expected.content : []),
          },
        );
      });
    }),
    { numRuns: 300 },
  );
});

test('any bytes end in members or in a typed error', async () => {
  const archive = packTar([
    { path: 'a', content: 'hello' },
    { path: 'long'.repeat(50), xattrs: new Map([['user.x', 'y']]) },
    { path: 'd/', type: 'directory' },
  ]);
  const damage = fc.array(fc.tuple(fc.nat(archive.length - 1), fc.nat(255)), { minLength: 1, maxLength: 8 });
  const damaged = fc.tuple(damage, fc.nat(archive.length), fc.boolean()).map(([changes, length, fixSums]) => {
    const bytes = Buffer.from(archive.subarray(0, length));
    for (const [at, value] of changes) if (at < length) bytes[at] = value;
    if (fixSums) for (let at = 0; at + 512 <= length; at += 512) setSum(bytes.subarray(at, at + 512));
    return bytes;
  });
  await fc.assert(
    fc.asyncProperty(fc.oneof(damaged, fc.uint8Array({ maxLength: 2048 })), async (bytes) => {
      try {
        await readAll(bytes, 700);
      } catch (error) {
        assert.ok(error instanceof AenvError && error.code === 'image_invalid', String(error));
      }
    }),
    { numRuns: 2000 },
  );
});

/** Gives a header block the checksum that it ought to have. */
function setSum(block: Buffer): void {
  if (block.every((byte) => byte === 0)) return;
  block.fill(0x20, 148, 156);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
}

for (const format of ['ustar', 'gnu', 'pax', 'oldgnu', 'v7']) {
  test(`archives of GNU tar in the ${format} format`, async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'aenv-tar-'));
    t.after(() => rmSync(directory, { recursive: true, force: true }));
    const longName = format === 'v7' ? 'f'.repeat(90) : `${'d'.repeat(90)}/${'f'.repeat(90)}`;
    const script = `mkdir -p "$(dirname ${longName})" sub && printf long > ${longName} && printf data > sub/a && ln sub/a sub/b && ln -s a sub/c &&
      chmod 4711 sub/a && tar --format=${format} --owner=:1234 --group=:99 --mtime=@1600000000 --sort=name -cf out.tar -- ${longName} sub`;
    execFileSync('sh', ['-ec', script], { cwd: directory });
    const members = await readAll(execFileSync('cat', [join(directory, 'out.tar')]));
    const byPath = new Map(members.map((item) => [item.entry.path.replace(/\/$/, ''), item]));
    const first = byPath.get('sub/a') as Read;
    assert.equal(byPath.get(longName)?.content.toString(), 'long');
    assert.equal(first.content.toString(), 'data');
    assert.deepEqual([first.entry.mode, first.entry.uid, first.entry.gid], [0o4711, 1234, 99]);
    assert.equal(first.entry.mtime, 1_600_000_000);
    assert.equal(byPath.get('sub')?.entry.type, 'directory');
    assert.deepEqual([byPath.get('sub/b')?.entry.type, byPath.get('sub/b')?.entry.link], ['hardlink', 'sub/a']);
    assert.deepEqual([byPath.get('sub/c')?.entry.type, byPath.get('sub/c')?.entry.link], ['symlink', 'a']);
  });
}

for (const [how, options] of Object.entries({
  gnu: '--format=gnu',
  pax: '--format=pax',
  'pax 0.1': '--format=pax --sparse-version=0.1',
})) {
  test(`a sparse file (${how}) is refused, not read wrongly`, async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'aenv-tar-'));
    t.after(() => rmSync(directory, { recursive: true, force: true }));
    execFileSync('sh', ['-ec', `truncate -s 1M s; printf x >> s; tar --sparse ${options} -cf out.tar s`], {
      cwd: directory,
    });
    await assert.rejects(readAll(execFileSync('cat', [join(directory, 'out.tar')])), isBroken(/sparse/));
  });
}

test('an archive that ends early is refused, wherever', async () => {
  const archive = packTar([{ path: 'a'.repeat(150), content: 'x'.repeat(700) }]);
  const whole = archive.length - TAR_END.length;
  for (const length of [1, 511, 512, 800, 1024, 1100, 1536, 1600, whole - 1]) {
    await assert.rejects(readAll(archive.subarray(0, length)), isBroken(/ends/), `cut at ${length}`);
  }
  // Without the two empty blocks it is complete nevertheless: some tools leave them out.
  assert.equal((await readAll(archive.subarray(0, whole))).length, 1);
});

test('the source is read to its end, for the sake of a hash over it', async () => {
  let bytes = 0;
  const archive = Buffer.concat([packTar([{ path: 'a' }]), Buffer.alloc(50_000)]);
  const counted = async function* () {
    for await (const chunk of chunked(archive, 1000)) {
      bytes += chunk.length;
      yield chunk;
    }
  };
  for await (const { entry } of readTar(counted())) assert.equal(entry.path, 'a');
  assert.equal(bytes, archive.length);
});

test('an extended header of a gigabyte is refused before it is read', async () => {
  const [plain] = await readAll(packTar([{ path: 'x' }]));
  const header = tarHeader({ ...(plain as Read).entry, size: 2 ** 30 });
  header[156] = 'x'.charCodeAt(0);
  setSum(header);
  await assert.rejects(readAll(header), isBroken(/1 MiB/));
});
