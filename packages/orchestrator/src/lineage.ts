/** Who came from whom: templates, the sandboxes started from them, their snapshots and forks, and so on. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ifThere } from '@aenv/std';
import type { LineageNode } from './engine.ts';
import type { Context } from './options.ts';
import type { Sandboxes } from './sandboxes.ts';
import type { BuildRow, TemplateTable } from './template-table.ts';

interface Parts {
  context: Context;
  sandboxes: Sandboxes;
  templates: TemplateTable;
}

type Node = Omit<LineageNode, 'uniqueMb'>;

/**
 * The family of a sandbox or build: its ancestors up to the template, and all that came from the first one that is no
 * template. Parents come before their children. Empty when nothing of it is known.
 */
export async function lineage(parts: Parts, id: string): Promise<LineageNode[]> {
  const all = new Map(
    [...buildNodes(parts), ...endedNodes(parts), ...sandboxNodes(parts)].map((node) => [node.id, node]),
  );
  const path = ancestors(all, id);
  const [template, ...rest] = path[0]?.kind === 'template' ? path : [undefined, ...path];
  const first = rest[0];
  const family = first ? descendants([...all.values()], first) : [];
  const nodes = template ? [template, ...family] : family;
  return Promise.all(nodes.map(async (node) => ({ ...node, uniqueMb: await uniqueMb(parts.context, node) })));
}

/** From the oldest one to `id` itself. */
function ancestors(all: ReadonlyMap<string, Node>, id: string): Node[] {
  const path: Node[] = [];
  for (let node = all.get(id); node && !path.includes(node); node = all.get(node.parentId ?? '')) path.unshift(node);
  return path;
}

function descendants(all: readonly Node[], root: Node): Node[] {
  const children = all.filter(({ parentId }) => parentId === root.id);
  children.sort((one, other) => one.createdAt - other.createdAt);
  return [root, ...children.flatMap((child) => descendants(all, child))];
}

function buildNodes({ templates }: Parts): Node[] {
  return templates.builds().map((build) => ({
    id: build.id,
    kind: build.sourceSandboxId === undefined ? 'template' : 'snapshot',
    name: nameOf(templates, build),
    state: build.status,
    createdAt: build.createdAt,
    ...(build.sourceSandboxId === undefined ? {} : { parentId: build.sourceSandboxId }),
  }));
}

function nameOf(templates: TemplateTable, { templateId, tags }: BuildRow): string {
  return `${templates.firstName(templateId) ?? templateId}:${tags[0] ?? 'default'}`;
}

function sandboxNodes({ sandboxes }: Parts): Node[] {
  return sandboxes.rows().map(({ id, phase, startedAt, parentId, originId }) => ({
    id,
    kind: 'sandbox',
    name: id,
    state: phase,
    createdAt: startedAt,
    parentId: parentId ?? originId,
  }));
}

function endedNodes({ sandboxes }: Parts): Node[] {
  return sandboxes.table.allEnded().map(({ id, at, cause, parentId }) => ({
    id,
    kind: 'sandbox',
    name: id,
    state: `ended (${cause})`,
    createdAt: at,
    ...(parentId === undefined ? {} : { parentId }),
  }));
}

/** MiB on the disk that nobody else uses. */
async function uniqueMb({ layers, layerStore, templateStore, sandboxStore }: Context, node: Node): Promise<number> {
  const { directory } = node.kind === 'sandbox' ? sandboxStore.saved(node.id) : templateStore.files(node.id);
  const files = [...layers.onlyOf(node.id).map((layer) => layerStore.path(layer)), ...(await filesIn(directory))];
  let bytes = 0;
  for (const file of files) bytes += await allocated(file);
  return Math.round(bytes / 2 ** 20);
}

async function filesIn(directory: string): Promise<string[]> {
  return (await ifThere(readdir(directory)))?.map((name) => join(directory, name)) ?? [];
}

async function allocated(file: string): Promise<number> {
  return ((await ifThere(stat(file)))?.blocks ?? 0) * 512;
}
