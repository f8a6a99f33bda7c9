/**
 * The file tree that an image's layers add up to. Only names and metadata: contents stay in the layers.
 *
 * Source: OCI image-spec v1.1 `layer.md`. A path in a layer is followed through symlinks of the layers below, always
 * inside the root, as a chroot would.
 */
import { AenvError } from '@aenv/std';
import { shownName, type TarEntry } from './tar/entry.ts';

const WHITEOUT = '.wh.';
const OPAQUE = '.wh..wh..opq';
/** Bookkeeping of AUFS that old images still carry. */
const AUFS_META = '.wh..wh.';
const MAX_NAME = 255;
const MAX_PATH = 4096;
const MAX_SYMLINKS = 255;
/** Symlinks could nest directories deeper than any path is long. */
const MAX_DEPTH = 1024;

/** What a name stands for; hard links share one. */
export interface Inode {
  entry: TarEntry;
  /** Index of the layer that holds the content. */
  layer: number;
  /** Number of the member in that layer's archive; -1 for a directory that no layer lists. */
  member: number;
}

export interface TreeNode {
  inode: Inode;
  /** The layer that put this name here, which is not the inode's own for a hard link to a file below. */
  layer: number;
  /** Present exactly for directories. */
  children?: Map<string, TreeNode>;
}

export interface DirectoryNode extends TreeNode {
  children: Map<string, TreeNode>;
}

const IMPLIED_DIRECTORY: TarEntry = {
  path: '',
  type: 'directory',
  mode: 0o755,
  uid: 0,
  gid: 0,
  mtime: 0,
  size: 0,
  link: '',
  major: 0,
  minor: 0,
  xattrs: new Map(),
};

export class RootTree {
  readonly root: DirectoryNode = impliedDirectory(0);

  /** Puts a layer on top. `entries` are all members of its archive, in order. */
  apply(entries: readonly TarEntry[], layer: number): void {
    entries.forEach((entry, member) => {
      this.#applyEntry({ entry, layer, member });
    });
  }

  #applyEntry(inode: Inode): void {
    const { entry, layer } = inode;
    if (entry.type === 'symlink') checkLink(entry);
    const parts = splitPath(entry.path);
    const name = parts.pop();
    if (name === undefined) {
      if (entry.type !== 'directory') throw layerError(entry.path, 'replaces the root directory');
      this.root.inode = inode;
      return;
    }
    if (name === OPAQUE) this.#hideChildren(parts, layer);
    else if ([...parts, name].some((part) => part.startsWith(AUFS_META))) return;
    else if (name.startsWith(WHITEOUT)) this.#hide(parts, whiteoutTarget(entry.path, name), layer);
    else this.#add(this.#makeDirectory(parts, layer, entry.path), name, inode);
  }

  #add(parent: DirectoryNode, name: string, inode: Inode): void {
    const { entry, layer } = inode;
    const existing = parent.children.get(name);
    if (entry.type === 'hardlink') {
      const target = this.#linkTarget(entry);
      if (target !== existing) parent.children.set(name, { inode: target.inode, layer });
    } else if (entry.type !== 'directory') {
      parent.children.set(name, { inode, layer });
    } else if (existing?.children) {
      existing.inode = inode;
      existing.layer = layer;
    } else {
      parent.children.set(name, { inode, layer, children: new Map() });
    }
  }

  #linkTarget(entry: TarEntry): TreeNode {
    const parts = splitPath(entry.link);
    const name = parts.pop();
    const target = name === undefined ? undefined : this.#findDirectory(parts)?.children.get(name);
    if (target === undefined)
      throw layerError(entry.path, `is a hard link to ${shownName(entry.link)}, which is missing`);
    if (target.children) throw layerError(entry.path, 'is a hard link to a directory');
    return target;
  }

  /** A whiteout hides what lower layers hold under the name, never what its own layer puts there. */
  #hide(parts: string[], name: string, layer: number): void {
    const parent = this.#findDirectory(parts);
    const node = parent?.children.get(name);
    if (parent && node && !keepsOwn(node, layer)) parent.children.delete(name);
  }

  #hideChildren(parts: string[], layer: number): void {
    const directory = this.#findDirectory(parts);
    for (const [name, node] of directory?.children ?? []) {
      if (!keepsOwn(node, layer)) directory?.children.delete(name);
    }
  }

  #findDirectory(parts: string[]): DirectoryNode | undefined {
    return this.#walk(parts, () => undefined);
  }

  #makeDirectory(parts: string[], layer: number, path: string): DirectoryNode {
    const directory = this.#walk(parts, (parent, name, existing) => {
      if (existing) throw layerError(path, `lies below ${shownName(name)}, which is not a directory`);
      const made = impliedDirectory(layer);
      parent.children.set(name, made);
      return made;
    });
    if (directory === undefined) throw layerError(path, 'lies behind a loop of symbolic links');
    return directory;
  }

  /** Follows names and symlinks from the root; `onMissing` is asked where there is no directory to go on with. */
  #walk(
    parts: string[],
    onMissing: (parent: DirectoryNode, name: string, existing: TreeNode | undefined) => DirectoryNode | undefined,
  ): DirectoryNode | undefined {
    const trail: DirectoryNode[] = [this.root];
    const ahead = parts.toReversed();
    let symlinks = 0;
    for (let name = ahead.pop(); name !== undefined; name = ahead.pop()) {
      const here = trail.at(-1) as DirectoryNode;
      if (name === '' || name === '.') continue;
      if (name === '..') {
        if (trail.length > 1) trail.pop();
        continue;
      }
      const next = here.children.get(name);
      if (next?.inode.entry.type === 'symlink') {
        symlinks += 1;
        if (symlinks > MAX_SYMLINKS) return undefined;
        const { link } = next.inode.entry;
        if (link.startsWith('/')) trail.length = 1;
        ahead.push(...link.split('/').reverse());
        continue;
      }
      const directory = next && isDirectory(next) ? next : onMissing(here, name, next);
      if (directory === undefined) return undefined;
      trail.push(directory);
      if (trail.length > MAX_DEPTH) throw layerError(parts.join('/'), `lies more than ${MAX_DEPTH} directories deep`);
    }
    return trail.at(-1);
  }
}

export function isDirectory(node: TreeNode): node is DirectoryNode {
  return node.children !== undefined;
}

function impliedDirectory(layer: number): DirectoryNode {
  return { inode: { entry: IMPLIED_DIRECTORY, layer, member: -1 }, layer, children: new Map() };
}

/** Removes what is not of `layer` below `node`; false when nothing of `layer` is left. */
function keepsOwn(node: TreeNode, layer: number): boolean {
  for (const [name, child] of node.children ?? []) {
    if (!keepsOwn(child, layer)) node.children?.delete(name);
  }
  return node.layer === layer || (node.children?.size ?? 0) > 0;
}

/** The parts of a path in a layer; refuses what leads out of the root or cannot be a file name. */
function splitPath(path: string): string[] {
  if (path.length > MAX_PATH) throw layerError(path, `has a path longer than ${MAX_PATH} bytes`);
  if (path.includes('\0')) throw layerError(path, 'has a NUL character in its path');
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  for (const part of parts) {
    if (part === '..') throw layerError(path, 'leads out of the root directory');
    if (part.length > MAX_NAME) throw layerError(path, `has a name longer than ${MAX_NAME} bytes`);
  }
  return parts;
}

function checkLink({ path, link }: TarEntry): void {
  const isLegal = link !== '' && link.length < MAX_PATH && !link.includes('\0');
  if (!isLegal) throw layerError(path, 'is a symbolic link without a legal target');
}

function whiteoutTarget(path: string, name: string): string {
  const target = name.slice(WHITEOUT.length);
  if (target === '' || target === '.' || target === '..') throw layerError(path, 'is a whiteout without a name');
  return target;
}

function layerError(path: string, reason: string): AenvError {
  return new AenvError('image_invalid', `a layer holds the illegal entry ${shownName(path)}: it ${reason}`, {
    remedy: 'The image is damaged or was made with ill intent: build it again, or pull from another source.',
  });
}
