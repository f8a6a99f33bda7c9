import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { AenvError } from '@aenv/std';
import { BlobCache, type Download } from './blob-cache.ts';
import { digestOf, splitDigest } from './digest.ts';
import { ownedName } from './owned-files.ts';

const CONTENT = Buffer.from('the content of the blob');
const BLOB = { digest: digestOf(CONTENT), size: CONTENT.length };
const HEX = splitDigest(BLOB.digest).hex;

async function newCache(t: TestContext): Promise<{ cache: BlobCache; blobs: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'aenv-cache-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const blobs = join(directory, 'blobs', 'sha256');
  await mkdir(blobs, { recursive: true });
  return { cache: new BlobCache(directory), blobs };
}

/** Writes the rest of `content`; `offsets` gets what was asked for. */
function source(content: Uint8Array, offsets: number[] = []): Download {
  return async (file, offset) => {
    offsets.push(offset);
    await file.write(content, offset, content.length - offset, offset);
  };
}

const never: Download = () => Promise.reject(new Error('nothing needs to be downloaded'));

/** The name that a process which has ended would have given its temporary file. */
function abandonedName(): string {
  const { pid } = spawnSync('true');
  return `${HEX}.${pid}-1-1.part`;
}

test('a blob is downloaded once', async (t) => {
  const { cache, blobs } = await newCache(t);
  const stored = await cache.get(BLOB, 'it', source(CONTENT));
  assert.deepEqual(await readFile(stored.path), CONTENT);
  assert.deepEqual(await cache.get(BLOB, 'it', never), stored);
  assert.deepEqual(await readdir(blobs), [HEX]);
});

test('a blob that was damaged on the disk is fetched again', async (t) => {
  const { cache, blobs } = await newCache(t);
  for (const damaged of [CONTENT.subarray(1), Buffer.alloc(CONTENT.length)]) {
    await writeFile(join(blobs, HEX), damaged);
    const { path } = await cache.get(BLOB, 'it', source(CONTENT));
    assert.deepEqual(await readFile(path), CONTENT);
  }
});

test('wrong content is refused and not kept', async (t) => {
  const { cache, blobs } = await newCache(t);
  await assert.rejects(
    cache.get(BLOB, 'layer 7', source(Buffer.from('THE CONTENT OF THE BLOB'))),
    (error: unknown) => error instanceof AenvError && error.code === 'image_invalid' && /layer 7/.test(error.message),
  );
  assert.deepEqual(await readdir(blobs), []);
});

test('the download of a process that has ended is continued', async (t) => {
  const { cache, blobs } = await newCache(t);
  await writeFile(join(blobs, abandonedName()), CONTENT.subarray(0, 7));
  const offsets: number[] = [];
  await cache.get(BLOB, 'it', source(CONTENT, offsets));
  assert.deepEqual(offsets, [7]);
  assert.deepEqual(await readdir(blobs), [HEX]);
});

test('when what it left is wrong, the download starts again', async (t) => {
  const { cache, blobs } = await newCache(t);
  await writeFile(join(blobs, abandonedName()), 'WRONG');
  const offsets: number[] = [];
  const { path } = await cache.get(BLOB, 'it', source(CONTENT, offsets));
  assert.deepEqual(offsets, [5, 0]);
  assert.deepEqual(await readFile(path), CONTENT);
});

test('two at the same time do not disturb each other', async (t) => {
  const { cache, blobs } = await newCache(t);
  const other = new BlobCache(join(blobs, '../..'));
  await Promise.all([cache, other].map((each) => each.get(BLOB, 'it', source(CONTENT))));
  assert.deepEqual(await readdir(blobs), [HEX]);
});

test('a layer that an image has twice is downloaded once', async (t) => {
  const { cache } = await newCache(t);
  const [first, second] = [cache.get(BLOB, 'it', source(CONTENT)), cache.get(BLOB, 'it', never)];
  assert.deepEqual(await first, await second);
});

test('pruning takes only what is old and belongs to nobody', async (t) => {
  const { cache, blobs } = await newCache(t);
  const old = join(blobs, abandonedName());
  const recent = join(blobs, abandonedName());
  const mine = await ownedName(join(blobs, HEX));
  for (const path of [old, recent, mine]) await writeFile(path, 'x');
  for (const path of [old, mine]) await utimes(path, 1, 1);
  await cache.prune();
  assert.deepEqual((await readdir(blobs)).sort(), [recent, mine].map((path) => basename(path)).sort());
});
