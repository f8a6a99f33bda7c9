/** What differs between two file systems. */
import { AenvError } from '@aenv/std';
import type { Ext4 } from './ext4.ts';
import type { Inode } from './ext4-inode.ts';

export interface FileChange {
  /** Absolute. */
  path: string;
  kind: 'added' | 'changed' | 'removed';
}

interface Side {
  disk: Ext4;
  inode: Inode;
}

/** A guest can make a tree without an end; nobody reads a list of so many files. */
const MAX_FILES = 5_000_000;
const MAX_DEPTH = 1024;

/**
 * Files, directories and links that are in one of them only, or differ in content, type, permissions or owner; sorted by
 * path. Times do not count.
 */
export async function compareTrees(before: Ext4, after: Ext4): Promise<FileChange[]> {
  const comparison = new Comparison();
  await comparison.directory(
    '',
    { disk: before, inode: await before.root() },
    { disk: after, inode: await after.root() },
  );
  return comparison.changes.sort((one, other) => (one.path < other.path ? -1 : 1));
}

class Comparison {
  readonly changes: FileChange[] = [];
  #seen = 0;

  async directory(path: string, before: Side | undefined, after: Side | undefined): Promise<void> {
    if (path.split('/').length > MAX_DEPTH) throw new AenvError('disk_unreadable', 'the file system nests without end');
    const [old, now] = await Promise.all([entriesOf(before), entriesOf(after)]);
    for (const name of new Set([...old.keys(), ...now.keys()])) {
      this.#count();
      await this.#entry(`${path}/${name}`, await sideAt(before, old.get(name)), await sideAt(after, now.get(name)));
    }
  }

  async #entry(path: string, before: Side | undefined, after: Side | undefined): Promise<void> {
    if (!before) this.changes.push({ path, kind: 'added' });
    else if (!after) this.changes.push({ path, kind: 'removed' });
    else if (!(await isSame(before, after))) this.changes.push({ path, kind: 'changed' });
    const [old, now] = [before, after].map((side) => (side?.inode.kind === 'directory' ? side : undefined));
    if (old || now) await this.directory(path, old, now);
  }

  #count(): void {
    this.#seen += 1;
    if (this.#seen > MAX_FILES)
      throw new AenvError('disk_unreadable', `there are more than ${MAX_FILES} files to compare`);
  }
}

async function entriesOf(side: Side | undefined): Promise<Map<string, number>> {
  return side ? side.disk.entries(side.inode) : new Map();
}

async function sideAt(parent: Side | undefined, number: number | undefined): Promise<Side | undefined> {
  return parent && number !== undefined ? { disk: parent.disk, inode: await parent.disk.inode(number) } : undefined;
}

async function isSame(before: Side, after: Side): Promise<boolean> {
  const [old, now] = [before.inode, after.inode];
  if (old.mode !== now.mode || old.uid !== now.uid || old.gid !== now.gid || old.device !== now.device) return false;
  // Nothing has touched it since they were one.
  const untouched = old.number === now.number && old.changedAt === now.changedAt && old.map.equals(now.map);
  if (untouched || now.kind === 'directory' || now.kind === 'other') return true;
  if (now.kind === 'symlink') return (await before.disk.target(old)) === (await after.disk.target(now));
  return before.disk.sameContent(old, after.disk, now);
}
