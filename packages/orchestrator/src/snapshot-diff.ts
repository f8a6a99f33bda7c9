/** What differs between two snapshots or templates, found without starting either. */
import { compareTrees, DiskStack, Ext4 } from '@aenv/disk';
import { compareMemory } from '@aenv/linux';
import type { TemplateManifest } from '@aenv/snapshot';
import { AenvError, isSystemError } from '@aenv/std';
import type { SnapshotDiff } from './engine.ts';
import type { Context } from './options.ts';
import type { BuildRow } from './template-table.ts';

const PAGES_PER_MB = 256;

/** `disk_unreadable`; `template_not_found` when one of them is deleted meanwhile. */
export async function compareBuilds({ templateStore }: Context, from: BuildRow, to: BuildRow): Promise<SnapshotDiff> {
  const [before, after] = await Promise.all([templateStore.manifest(from.id), templateStore.manifest(to.id)]);
  try {
    return { files: await compareDisks(before, after), ...(await compareMemories(before, after)) };
  } catch (error) {
    if (!isSystemError(error, 'ENOENT')) throw error;
    throw new AenvError('template_not_found', 'one of the two was deleted while they were compared', { cause: error });
  }
}

async function compareDisks(before: TemplateManifest, after: TemplateManifest): Promise<SnapshotDiff['files']> {
  await using one = await DiskStack.open([...before.disk.parents, before.disk.path]);
  await using two = await DiskStack.open([...after.disk.parents, after.disk.path]);
  // The disks are open until it is done.
  return await compareTrees(await Ext4.open(one), await Ext4.open(two));
}

async function compareMemories(
  { memory: before }: TemplateManifest,
  { memory: after }: TemplateManifest,
): Promise<Pick<SnapshotDiff, 'memory'>> {
  if (!before || !after) return {};
  const { changedPages, pages } = await compareMemory(before, after);
  return { memory: { changedMb: changedPages / PAGES_PER_MB, totalMb: pages / PAGES_PER_MB } };
}
