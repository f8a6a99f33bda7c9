/** Layers in, one tar stream of the resulting tree out. Nothing is unpacked: each layer is read twice. */
import { AenvError } from '@aenv/std';
import type { AttributeList } from './attributes.ts';
import { openLayer, openVerifiedLayer } from './layer-stream.ts';
import { type DirectoryNode, type Inode, isDirectory, RootTree } from './root-tree.ts';
import type { StoredBlob } from './source.ts';
import type { TarEntry } from './tar/entry.ts';
import { readTar } from './tar/reader.ts';
import { TAR_END, tarHeader, tarPadding } from './tar/writer.ts';

/** Bytes that are gathered before they go down a pipe. */
const BATCH_BYTES = 1 << 18;
const MAX_MEMBERS = 4_000_000;

/** The members of a layer, with the digest of the whole verified. */
export async function scanLayer(blob: StoredBlob, diffId: string, label: string): Promise<TarEntry[]> {
  const entries: TarEntry[] = [];
  for await (const { entry } of readTar(openVerifiedLayer(blob, diffId, label))) {
    entries.push(entry);
    if (entries.length > MAX_MEMBERS) throw new AenvError('image_invalid', `layer ${label} holds too many files`);
  }
  return entries;
}

export function buildTree(layers: readonly (readonly TarEntry[])[]): RootTree {
  const tree = new RootTree();
  layers.forEach((entries, index) => {
    tree.apply(entries, index);
  });
  return tree;
}

export interface TreeTotals {
  inodes: number;
  /** Bytes of file content. */
  contentBytes: number;
  /** Bytes that the contents and the directories take in blocks of 4 KiB. */
  blockBytes: number;
}

export function measureTree(tree: RootTree): TreeTotals {
  const { directories, names } = listTree(tree);
  const totals = { inodes: directories.length + names.size, contentBytes: 0, blockBytes: directories.length * 4096 };
  for (const { entry } of names.keys()) {
    totals.contentBytes += entry.size;
    totals.blockBytes += Math.ceil(entry.size / 4096) * 4096;
  }
  return totals;
}

/** What has extended attributes, by one of its names. */
export function listAttributes(tree: RootTree): AttributeList {
  const { directories, names } = listTree(tree);
  const others: [string, Inode][] = [...names].map(([inode, [path = '']]) => [path, inode]);
  return [...directories.map(([path, { inode }]): [string, Inode] => [path, inode]), ...others]
    .filter(([, { entry }]) => entry.xattrs.size > 0)
    .map(([path, { entry }]) => ({ path, xattrs: entry.xattrs }));
}

export interface FlattenOptions {
  /** Called with the bytes of file content written so far. */
  onBytes?: (completed: number) => void;
}

/**
 * The tree as a tar stream: directories first, then everything else, a file's further names right behind it.
 * `blobs` are the layers that the tree was built from.
 */
export async function* flatten(
  tree: RootTree,
  blobs: readonly StoredBlob[],
  options: FlattenOptions = {},
): AsyncGenerator<Uint8Array> {
  yield* inBatches(members(tree, blobs, options));
}

async function* members(
  tree: RootTree,
  blobs: readonly StoredBlob[],
  { onBytes }: FlattenOptions,
): AsyncGenerator<Uint8Array> {
  const { directories, names } = listTree(tree);
  for (const [path, node] of directories) yield tarHeader({ ...node.inode.entry, path: `./${path}` });
  const withContent = new Map<number, Map<number, Inode>>();
  for (const [inode, paths] of names) {
    if (inode.entry.size === 0) yield* namesOf(inode, paths);
    else entryOf(withContent, inode.layer, () => new Map<number, Inode>()).set(inode.member, inode);
  }
  let written = 0;
  for (const [layer, wanted] of [...withContent].sort(([a], [b]) => a - b)) {
    for await (const { inode, content } of wantedMembers(blobs[layer] as StoredBlob, wanted)) {
      const [first = '', ...others] = names.get(inode) ?? [];
      yield tarHeader({ ...inode.entry, path: first });
      yield* content;
      yield tarPadding(inode.entry.size);
      yield* linksTo(inode, first, others);
      written += inode.entry.size;
      onBytes?.(written);
    }
  }
  yield TAR_END;
}

/** The members of a layer that are part of the tree; ends once all have been seen. */
async function* wantedMembers(
  blob: StoredBlob,
  wanted: ReadonlyMap<number, Inode>,
): AsyncGenerator<{ inode: Inode; content: AsyncIterable<Uint8Array> }> {
  let member = 0;
  let left = wanted.size;
  for await (const { content } of readTar(openLayer(blob))) {
    const inode = wanted.get(member);
    member += 1;
    if (inode === undefined) continue;
    yield { inode, content };
    left -= 1;
    if (left === 0) return;
  }
  throw new AenvError('image_invalid', 'a layer changed while it was being read', { remedy: 'Pull the image again.' });
}

function* namesOf(inode: Inode, [first = '', ...others]: readonly string[]): Generator<Buffer> {
  yield tarHeader({ ...inode.entry, path: first });
  yield* linksTo(inode, first, others);
}

/** mke2fs takes the metadata of a hard link for that of the file, so every link carries it. */
function* linksTo(inode: Inode, first: string, others: readonly string[]): Generator<Buffer> {
  for (const path of others) yield tarHeader({ ...inode.entry, type: 'hardlink', size: 0, path, link: first });
}

interface TreeList {
  /** Path (empty for the root) and node, parents before children. */
  directories: [string, DirectoryNode][];
  /** Everything else, with all its paths. */
  names: Map<Inode, string[]>;
}

function listTree(tree: RootTree): TreeList {
  const list: TreeList = { directories: [['', tree.root]], names: new Map() };
  for (const [path, directory] of list.directories) {
    for (const [name, node] of [...directory.children].sort(byName)) {
      const childPath = path === '' ? name : `${path}/${name}`;
      if (isDirectory(node)) list.directories.push([childPath, node]);
      else entryOf(list.names, node.inode, () => []).push(childPath);
    }
  }
  return list;
}

function entryOf<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const value = map.get(key) ?? make();
  map.set(key, value);
  return value;
}

function byName([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : 1;
}

/** Fewer, larger chunks: an archive of many small files is mostly 512-byte headers. */
async function* inBatches(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let batch: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of source) {
    batch.push(chunk);
    bytes += chunk.length;
    if (bytes < BATCH_BYTES) continue;
    yield Buffer.concat(batch);
    batch = [];
    bytes = 0;
  }
  if (bytes > 0) yield Buffer.concat(batch);
}
