import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, test } from 'node:test';
import { AenvError } from '@aenv/std';
import { packTar, type TestMember } from '@aenv/testkit';
import { buildTree, flatten, measureTree, scanLayer } from './flatten.ts';
import type { StoredBlob } from './source.ts';
import { readTar } from './tar/reader.ts';

let directory: string;
let files = 0;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'aenv-flatten-'));
});
after(() => rm(directory, { recursive: true, force: true }));

/** Path → what is there: file content, `/` for a directory, `-> target` for a symlink, `= other` for a hard link. */
type Listing = Record<string, string>;

async function flattened(layers: TestMember[][]): Promise<Listing> {
  const blobs: StoredBlob[] = [];
  const scanned = [];
  for (const members of layers) {
    const tar = packTar(members);
    files += 1;
    const blob = { path: join(directory, String(files)), start: 0, size: tar.length };
    await writeFile(blob.path, tar);
    blobs.push(blob);
    scanned.push(await scanLayer(blob, `sha256:${createHash('sha256').update(tar).digest('hex')}`, 'x'));
  }
  const listing: Listing = {};
  for await (const { entry, content } of readTar(flatten(buildTree(scanned), blobs))) {
    const parts: Uint8Array[] = [];
    for await (const part of content) parts.push(part);
    const path = entry.path.replace(/^\.\//, '');
    assert.ok(!(path in listing), `${path} comes twice`);
    assert.ok(path === '' || path.lastIndexOf('/') < 1 || listing[path.slice(0, path.lastIndexOf('/'))] === '/');
    if (path === '') continue;
    if (entry.type === 'directory') listing[path] = '/';
    else if (entry.type === 'symlink') listing[path] = `-> ${entry.link}`;
    else if (entry.type === 'hardlink') listing[path] = `= ${entry.link}`;
    else listing[path] = Buffer.concat(parts).toString();
  }
  return listing;
}

const file = (path: string, content: string): TestMember => ({ path, content });
const dir = (path: string): TestMember => ({ path, type: 'directory' });
const symlink = (path: string, link: string): TestMember => ({ path, type: 'symlink', link });
const hardlink = (path: string, link: string): TestMember => ({ path, type: 'hardlink', link });

const CASES: Record<string, { layers: TestMember[][]; is: Listing }> = {
  'later layers win, and later entries of one layer': {
    layers: [[file('a', '1'), file('b', '1'), file('b', '2')], [file('a', '3')]],
    is: { a: '3', b: '2' },
  },
  'a whiteout hides a file, and a whole directory': {
    layers: [
      [file('a', '1'), file('d/x', '1'), file('d/y/z', '1')],
      [file('.wh.a', ''), file('.wh.d', '')],
    ],
    is: {},
  },
  'a whiteout of something that is not there': { layers: [[file('a', '1')], [file('x/y/.wh.z', '')]], is: { a: '1' } },
  'a whiteout does not hide what its own layer brings, in either order': {
    layers: [
      [file('a', '1'), file('d/old', '1'), file('e/old', '1')],
      [file('a', '2'), file('.wh.a', ''), file('.wh.d', ''), file('d/new', '2'), file('e/new', '2'), file('.wh.e', '')],
    ],
    is: { a: '2', d: '/', 'd/new': '2', e: '/', 'e/new': '2' },
  },
  'an opaque directory hides what is below it, in either order': {
    layers: [
      [file('d/old', '1'), file('d/s/old', '1'), file('e/old', '1')],
      [dir('d'), file('d/.wh..wh..opq', ''), file('d/new', '2'), file('e/new', '2'), file('e/.wh..wh..opq', '')],
    ],
    is: { d: '/', 'd/new': '2', e: '/', 'e/new': '2' },
  },
  'an opaque directory in place of a symlink leaves the target of the symlink alone': {
    layers: [
      [file('t/a', '1'), symlink('l', 't')],
      [dir('l'), file('l/.wh..wh..opq', ''), file('l/b', '2')],
    ],
    is: { t: '/', 't/a': '1', l: '/', 'l/b': '2' },
  },
  'whatever replaces a directory takes its content away': {
    layers: [
      [file('d/x', '1'), file('e/x', '1')],
      [file('d', '2'), symlink('e', 'd')],
    ],
    is: { d: '2', e: '-> d' },
  },
  'a directory that comes again keeps its content': {
    layers: [[file('d/x', '1')], [dir('d')]],
    is: { d: '/', 'd/x': '1' },
  },
  'files reach their place through symlinks of lower layers': {
    layers: [
      [dir('usr/lib'), symlink('lib', 'usr/lib'), symlink('abs', '/usr'), symlink('two', 'abs/../lib')],
      [file('lib/a', '1'), file('abs/lib/b', '2'), file('two/c', '3')],
    ],
    is: {
      usr: '/',
      'usr/lib': '/',
      lib: '-> usr/lib',
      abs: '-> /usr',
      two: '-> abs/../lib',
      'usr/lib/a': '1',
      'usr/lib/b': '2',
      'usr/lib/c': '3',
    },
  },
  'a symlink that points out of the root stays inside': {
    layers: [[symlink('out', '../../../..')], [file('out/etc/passwd', 'mine')]],
    is: { out: '-> ../../../..', etc: '/', 'etc/passwd': 'mine' },
  },
  'a whiteout through a symlink': {
    layers: [[file('d/x', '1'), file('d/y', '1'), symlink('l', 'd')], [file('l/.wh.x', '')]],
    is: { d: '/', 'd/y': '1', l: '-> d' },
  },
  'hard links keep their content when the other name goes, or changes': {
    layers: [
      [file('a', '1'), file('b', '2')],
      [hardlink('a2', 'a'), hardlink('b2', 'b')],
      [file('.wh.a', ''), file('b', '3')],
    ],
    is: { a2: '1', b2: '2', b: '3' },
  },
  'hard links to files with and without content, and to symlinks': {
    layers: [
      [
        file('a', 'x'),
        hardlink('b', './a'),
        hardlink('c', '/b'),
        file('e', ''),
        hardlink('f', 'e'),
        symlink('s', 'a'),
        hardlink('t', 's'),
      ],
    ],
    is: { a: 'x', b: '= a', c: '= a', e: '', f: '= e', s: '-> a', t: '= s' },
  },
  'bookkeeping of AUFS is left out': {
    layers: [[file('.wh..wh.plnk/1.2', ''), file('.wh..wh.aufs', ''), file('a', '1')]],
    is: { a: '1' },
  },
  'absolute names, doubled slashes and dots': {
    layers: [[file('/a//./b', '1'), file('./c', '2')]],
    is: { a: '/', 'a/b': '1', c: '2' },
  },
  'names that are no UTF-8': { layers: [[file('\xff\xfe', '1')]], is: { '\xff\xfe': '1' } },
};

for (const [name, { layers, is }] of Object.entries(CASES)) {
  test(name, async () => {
    assert.deepEqual(sorted(await flattened(layers)), sorted(is));
  });
}

function sorted(listing: Listing): [string, string][] {
  return Object.entries(listing).sort(([a], [b]) => (a < b ? -1 : 1));
}

const ILLEGAL: Record<string, TestMember[]> = {
  'a name with ..': [file('a/../../etc/passwd', 'x')],
  'a name that is ..': [file('..', 'x')],
  'a hard link out of the root': [hardlink('a', '../../etc/shadow')],
  'a hard link to nothing': [hardlink('a', 'b')],
  'a hard link to a directory': [dir('d'), hardlink('a', 'd')],
  'a hard link to the root': [hardlink('a', '/')],
  'a file in place of the root': [file('.', 'x')],
  'a name that is too long': [file('n'.repeat(256), 'x')],
  'a path that is too long': [file('d/'.repeat(2100), 'x')],
  'a file below a file': [file('a', 'x'), file('a/b', 'y')],
  'a loop of symlinks': [symlink('a', 'b'), symlink('b', 'a'), file('a/c', 'x')],
  'a symlink without a target': [symlink('a', '')],
  'a symlink with an endless target': [symlink('a', 'x/'.repeat(3000))],
  'a whiteout without a name': [file('.wh.', '')],
  'a whiteout of the directory itself': [file('d/.wh..', '')],
  'a whiteout of the directory above': [file('d/.wh...', '')],
};

for (const [name, members] of Object.entries(ILLEGAL)) {
  test(`${name} is refused`, async () => {
    await assert.rejects(
      flattened([members]),
      (error: unknown) => error instanceof AenvError && error.code === 'image_invalid' && !!error.remedy,
    );
  });
}

test('directories nested by way of symlinks are refused before they exhaust the stack', async () => {
  const deep = 'd/'.repeat(500);
  const members = [dir(deep), symlink('l', deep), dir(`l/${deep}`), symlink('m', `l/${deep}`), dir(`m/${deep}`)];
  await assert.rejects(flattened([members]), /directories deep/);
});

test('the size of the tree is counted in blocks, hard links once', async () => {
  const tar = packTar([file('a', 'x'.repeat(5000)), hardlink('b', 'a'), file('c', ''), dir('d')]);
  const entries = [];
  for await (const { entry } of readTar(Readable.from([tar]))) entries.push(entry);
  assert.deepEqual(measureTree(buildTree([entries])), {
    inodes: 4,
    contentBytes: 5000,
    blockBytes: 2 * 4096 + 2 * 4096,
  });
});
