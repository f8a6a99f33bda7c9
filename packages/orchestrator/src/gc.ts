/** Frees what can be made again and nothing stands on: the disks of images. */
import { rmSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError, ifThere } from '@aenv/std';
import type { Builds } from './builds.ts';
import type { Garbage } from './engine.ts';
import type { Context } from './options.ts';
import type { TemplateTable } from './template-table.ts';

interface Parts {
  context: Context;
  builds: Builds;
  templates: TemplateTable;
}

/** What goes, or with `dryRun` would go. `conflict` while a build is in progress: it may be about to need any image. */
export async function collect({ context, builds, templates }: Parts, dryRun: boolean): Promise<Garbage[]> {
  const ready = readyIds(templates);
  const used = await disksOf(context, ready);
  const garbage: Garbage[] = [];
  for (const name of (await ifThere(readdir(context.home.imageDisks))) ?? []) {
    const path = join(context.home.imageDisks, name);
    const found = await ifThere(stat(path));
    if (used.has(path) || !found?.isFile()) continue;
    garbage.push({
      kind: 'image_disk',
      name,
      bytes: found.blocks * 512,
      why: 'no template stands on it; it can be pulled again',
    });
  }
  // From this question to the last removal nothing else runs in this process, so no build begins in between.
  if (!builds.isIdle || readyIds(templates).join() !== ready.join()) {
    throw new AenvError('conflict', 'a build is in progress, and may be about to need any image', {
      remedy: 'Try again when it has ended (`aenv ops`).',
    });
  }
  if (!dryRun) for (const { name } of garbage) rmSync(join(context.home.imageDisks, name), { force: true });
  return garbage;
}

function readyIds(templates: TemplateTable): string[] {
  return templates.builds().flatMap(({ id, status }) => (status === 'ready' ? [id] : []));
}

/** Paths of all files that the disks of these builds stand on. */
async function disksOf({ templateStore }: Context, buildIds: string[]): Promise<Set<string>> {
  const used = new Set<string>();
  for (const id of buildIds) {
    const { disk } = await templateStore.manifest(id);
    for (const path of [disk.path, ...disk.parents]) used.add(path);
  }
  return used;
}
