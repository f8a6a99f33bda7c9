import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, open, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { AenvError } from '@aenv/std';
import fc from 'fast-check';
import { compareTrees, Ext4, FileSource } from './index.ts';

const SIZE_MB = 16;

async function withDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'aenv-ext4-'));
  try {
    await work(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** A disk with what `fill` puts into a directory. */
async function disk(directory: string, fill: (tree: string) => Promise<void>): Promise<string> {
  const tree = join(directory, 'tree');
  await mkdir(tree);
  await fill(tree);
  const path = join(directory, 'disk.raw');
  await writeFile(path, '');
  await truncate(path, SIZE_MB << 20);
  execFileSync('mke2fs', ['-q', '-F', '-t', 'ext4', '-b', '4096', '-d', tree, path], { stdio: 'pipe' });
  return path;
}

/** Runs commands of debugfs, which writes to the file system without mounting it. */
function change(path: string, commands: string[]): void {
  execFileSync('debugfs', ['-w', '-f', '-', path], {
    input: `${commands.join('\n')}\n`,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

async function difference(before: string, after: string): Promise<Record<string, string>> {
  await using one = await FileSource.open(before);
  await using two = await FileSource.open(after);
  const changes = await compareTrees(await Ext4.open(one), await Ext4.open(two));
  return Object.fromEntries(changes.map(({ path, kind }) => [path, kind]));
}

async function fill(tree: string): Promise<void> {
  await mkdir(join(tree, 'etc/deep/er'), { recursive: true });
  for (let n = 0; n < 300; n += 1) await writeFile(join(tree, 'etc', `file ${n} ü`), `content ${n}`);
  await writeFile(join(tree, 'big'), Buffer.alloc(3_000_000, 'x'));
  await writeFile(join(tree, 'etc/deep/er/leaf'), 'leaf');
  await symlink('etc/deep', join(tree, 'short'));
  await symlink('l'.repeat(200), join(tree, 'long'));
}

test('what is there is read: directories, contents, links, holes', () =>
  withDirectory(async (directory) => {
    const path = await disk(directory, async (tree) => {
      await fill(tree);
      await using sparse = await open(join(tree, 'sparse'), 'w');
      await sparse.write('end', 9_000_000);
    });
    await using source = await FileSource.open(path);
    const ext4 = await Ext4.open(source);
    const root = await ext4.entries(await ext4.root());
    assert.deepEqual([...root.keys()].sort(), ['big', 'etc', 'long', 'lost+found', 'short', 'sparse']);
    const at = async (name: string) => ext4.inode(root.get(name) ?? 0);
    assert.equal(await ext4.target(await at('short')), 'etc/deep');
    assert.equal(await ext4.target(await at('long')), 'l'.repeat(200));
    assert.equal((await ext4.entries(await at('etc'))).size, 301);
    const parts: number[] = [];
    const sparse = await at('sparse');
    for await (const { offset, data } of ext4.content(sparse)) parts.push(offset, data.length);
    assert.deepEqual(parts, [8_998_912, 9_000_003 - 8_998_912]);
    assert.equal(await ext4.sameContent(sparse, ext4, sparse), true);
    assert.equal(await ext4.sameContent(sparse, ext4, { ...(await at('big')), size: sparse.size }), false);
  }));

test('added, removed and changed files are told apart; a touched one has not changed', () =>
  withDirectory(async (directory) => {
    const before = await disk(directory, fill);
    const after = join(directory, 'after.raw');
    await copyFile(before, after);
    assert.deepEqual(await difference(before, after), {});
    const fresh = join(directory, 'fresh');
    await writeFile(fresh, 'something');
    change(after, [
      'mkdir added',
      `write ${fresh} added/file`,
      'rm "etc/file 7 ü"',
      `rm "etc/file 8 ü"`,
      `write ${fresh} "etc/file 8 ü"`,
      'set_inode_field "etc/file 9 ü" mode 0100600',
      'set_inode_field "etc/file 10 ü" mtime 20200101',
      'set_inode_field "etc/file 10 ü" ctime 20200101',
      'rm short',
      'symlink short elsewhere',
      'rm etc/deep/er/leaf',
      'rmdir etc/deep/er',
    ]);
    const expected = {
      '/added': 'added',
      '/added/file': 'added',
      '/etc/deep/er': 'removed',
      '/etc/deep/er/leaf': 'removed',
      '/etc/file 7 ü': 'removed',
      '/etc/file 8 ü': 'changed',
      '/etc/file 9 ü': 'changed',
      '/short': 'changed',
    };
    assert.deepEqual(await difference(before, after), expected);
    const swapped = { added: 'removed', removed: 'added', changed: 'changed' };
    const reverse = Object.entries(expected).map(([path, kind]) => [path, swapped[kind as keyof typeof swapped]]);
    assert.deepEqual(await difference(after, before), Object.fromEntries(reverse));
  }));

/** The content of the first few files in /etc. */
async function firstBlocks(path: string): Promise<string[]> {
  await using source = await FileSource.open(path);
  const ext4 = await Ext4.open(source);
  const root = await ext4.entries(await ext4.root());
  const etc = await ext4.entries(await ext4.inode(root.get('etc') ?? 0));
  const texts: string[] = [];
  for (const number of [1, 2, 3, 4]) {
    const file = { ...(await ext4.inode(etc.get(`file ${number} ü`) ?? 0)), size: 4096 };
    for await (const { data } of ext4.content(file)) texts.push(data.toString('latin1'));
  }
  return texts;
}

test('what lies in the journal counts as written, unless it was revoked or not committed', () =>
  withDirectory(async (directory) => {
    const before = await disk(directory, fill);
    const numberOf = (name: string) =>
      Number(execFileSync('debugfs', ['-R', `bmap "${name}" 0`, before], { stdio: 'pipe' }).toString());
    const [first, second, third] = ['etc/file 1 ü', 'etc/file 2 ü', 'etc/file 3 ü'].map(numberOf);
    const block = join(directory, 'block');
    await writeFile(block, Buffer.alloc(2 * 4096, 'content X'));
    const escaped = join(directory, 'escaped');
    // The magic number of the journal: it has to be written in another form.
    await writeFile(escaped, Buffer.concat([Buffer.from([0xc0, 0x3b, 0x39, 0x98]), Buffer.alloc(4092, 'y')]));
    const replayed = join(directory, 'replayed.raw');
    for (const checksums of ['', ' -c -v 2', ' -c -v 3']) {
      const after = join(directory, 'after.raw');
      await copyFile(before, after);
      change(after, [
        `journal_open${checksums}`,
        `journal_write -b ${first},${second} ${block}`,
        `journal_write -b ${third} ${escaped}`,
        `journal_write -r ${second}`,
        'journal_close',
      ]);
      await copyFile(after, replayed);
      execFileSync('e2fsck', ['-E', 'journal_only', '-p', replayed], { stdio: 'pipe' });
      const [old, journaled, written] = await Promise.all([before, after, replayed].map(firstBlocks));
      assert.deepEqual(journaled, written, `with${checksums || ' no checksums'}`);
      assert.deepEqual(
        journaled?.map((text, at) => text === old?.[at]),
        [false, true, false, true],
      );
    }
  }));

test('a damaged file system is an error of its own kind, and never read for ever', () =>
  withDirectory(async (directory) => {
    const path = await disk(directory, fill);
    const block = join(directory, 'block');
    await writeFile(block, Buffer.alloc(4096, 'x'));
    change(path, ['journal_open', `journal_write -b 3000 ${block}`, 'journal_write -r 3001', 'journal_close']);
    const journal = 4096 * Number(execFileSync('debugfs', ['-R', 'bmap <8> 0', path], { stdio: 'pipe' }).toString());
    await using source = await FileSource.open(path);
    const good = await readFile(path);
    const places = fc.oneof(
      fc.nat(1024).map((at) => journal + at),
      fc.nat(200).map((at) => journal + 4096 + at),
      fc.integer({ min: 1024, max: 2047 }),
      fc.integer({ min: 4096, max: 4096 * 400 }),
      fc.nat(good.length - 1),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(places, fc.nat(255)), { minLength: 1, maxLength: 200 }), async (changes) => {
        const bytes = Buffer.from(good);
        for (const [at, value] of changes) bytes[at] = value;
        const damaged = {
          size: bytes.length,
          read: async (offset: number, length: number) => {
            if (offset + length > bytes.length) throw new AenvError('disk_unreadable', 'too short');
            return Buffer.from(bytes.subarray(offset, offset + length));
          },
        };
        try {
          await compareTrees(await Ext4.open(source), await Ext4.open(damaged));
        } catch (error) {
          assert.ok(error instanceof AenvError && error.code === 'disk_unreadable', String((error as Error).stack));
        }
      }),
      { numRuns: 150 },
    );
  }));
