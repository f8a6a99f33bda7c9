/**
 * Compares what is on the machine with what the records say. A stray is something that no record owns; since operations are
 * under way meanwhile, only what is one at two looks counts.
 */
import { readdir, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { VmProcess } from '@aenv/linux';
import { AenvError, sleep } from '@aenv/std';
import type { AuditFinding } from './engine.ts';
import { ownerOfVm } from './launch.ts';
import type { Context } from './options.ts';
import type { Sandboxes } from './sandboxes.ts';
import type { SlotPool } from './slot-pool.ts';
import type { TemplateTable } from './template-table.ts';

/** Between the two looks, milliseconds. An operation takes over what it has made sooner than that. */
const SETTLE_MS = 1_500;

interface Stray extends AuditFinding {
  remove?: () => Promise<void>;
}

export interface AuditParts {
  context: Context;
  sandboxes: Sandboxes;
  templates: TemplateTable;
  slots: SlotPool;
}

/** Everything that is wrong; with `repair`, strays are removed. Things that are missing can only be told. */
export async function audit(parts: AuditParts, repair: boolean): Promise<AuditFinding[]> {
  const first = new Set((await look(parts)).map(keyOf));
  if (first.size === 0) return [];
  await sleep(SETTLE_MS);
  const strays = (await look(parts)).filter((stray) => first.has(keyOf(stray)));
  const findings: AuditFinding[] = [];
  for (const { remove, ...finding } of strays) {
    const removed = repair && remove !== undefined && (await tried(parts.context, finding, remove));
    findings.push({ ...finding, removed });
  }
  return findings;
}

const keyOf = ({ kind, name }: AuditFinding): string => `${kind} ${name}`;

async function tried({ logger }: Context, finding: AuditFinding, remove: () => Promise<void>): Promise<boolean> {
  try {
    await remove();
    return true;
  } catch (err) {
    logger.error({ err, ...finding }, 'a stray could not be removed');
    return false;
  }
}

async function look(parts: AuditParts): Promise<Stray[]> {
  const { context, sandboxes, templates } = parts;
  const vms = await context.launcher.listVms();
  // VMs that wait in the pool, and copies in progress, hold their disk layers.
  const owners = new Set([...sandboxes.ids(), ...templates.builds().map(({ id }) => id), ...context.layers.holders()]);
  const found = await Promise.all([
    vmStrays(parts, vms, owners),
    directoryStrays(context.home.sandboxes, 'sandbox_files', owners, (name) => name),
    directoryStrays(context.home.templates, 'template_files', owners, (name) => name.replace(/^\.staging-/, '')),
    directoryStrays(context.home.vms, 'run_directory', owners, ownerOfVm),
    layerFindings(context),
    kernelStrays(context),
    sandboxFindings(parts, vms),
  ]);
  return found.flat();
}

async function vmStrays(
  { context: { launcher }, sandboxes, slots }: AuditParts,
  vms: VmProcess[],
  owners: ReadonlySet<string>,
): Promise<Stray[]> {
  const strays: Stray[] = vms
    .filter(({ id }) => !owners.has(ownerOfVm(id)))
    .map(({ id, pid }) => ({
      kind: 'vm',
      name: id,
      detail: `process ${pid} runs for nobody`,
      remove: () => launcher.killVm(id, 0),
    }));
  const used = new Set([...vms.map(({ slot }) => slot), ...sandboxes.slots(), ...slots.indexes()]);
  for (const { index, namespace } of await launcher.listSlots()) {
    if (used.has(index)) continue;
    const detail = `network slot ${index} has neither a VM nor an owner`;
    strays.push({ kind: 'slot', name: namespace, detail, remove: () => launcher.destroySlot(index) });
  }
  return strays;
}

async function directoryStrays(
  directory: string,
  kind: AuditFinding['kind'],
  owners: ReadonlySet<string>,
  ownerOf: (name: string) => string,
): Promise<Stray[]> {
  const names = (await readdir(directory)).filter((name) => !owners.has(ownerOf(name)));
  return names.map((name) => ({
    kind,
    name,
    detail: `${join(directory, name)} belongs to no record`,
    remove: () => rm(join(directory, name), { recursive: true, force: true }),
  }));
}

async function layerFindings({ layers, layerStore, home }: Context): Promise<Stray[]> {
  const files = new Set((await readdir(home.layers)).map((name) => basename(name, '.qcow2')));
  const held = layers.all();
  const strays = [...files].filter((layer) => !held.has(layer));
  const missing = [...held].filter((layer) => !files.has(layer));
  return [
    ...strays.map(
      (layer): Stray => ({
        kind: 'layer',
        name: layer,
        detail: 'a disk layer that nobody needs',
        remove: () => layerStore.remove([layer]),
      }),
    ),
    ...missing.map(
      (layer): Stray => ({
        kind: 'missing_layer',
        name: layer,
        detail: 'a record needs this disk layer, and its file is gone',
      }),
    ),
  ];
}

async function kernelStrays({ launcher }: Context): Promise<Stray[]> {
  const left = await launcher.leftovers(false);
  return left.map(({ kind, name }) => ({
    kind,
    name,
    detail: `a ${kind} of this machine that no launcher owns`,
    remove: async () => void (await launcher.leftovers(true)),
  }));
}

/** Records whose sandbox cannot go on. */
async function sandboxFindings(
  { context: { sandboxStore }, sandboxes }: AuditParts,
  vms: VmProcess[],
): Promise<Stray[]> {
  const running = new Set(vms.map(({ id }) => id));
  const findings: Stray[] = [];
  for (const { id, phase, run } of sandboxes.rows()) {
    if (phase === 'running' && (!run || !running.has(run.vm.id))) {
      findings.push({ kind: 'missing_vm', name: id, detail: 'recorded as running, and its VM is gone' });
    }
    if (phase === 'paused' && !(await isSaved(sandboxStore, id))) {
      findings.push({
        kind: 'missing_state',
        name: id,
        detail: 'recorded as paused, and its saved state is incomplete',
      });
    }
  }
  return findings;
}

async function isSaved(store: Context['sandboxStore'], id: string): Promise<boolean> {
  try {
    return (await store.paused(id)) !== undefined;
  } catch (error) {
    if (error instanceof AenvError) return false;
    throw error;
  }
}
