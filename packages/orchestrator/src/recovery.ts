/**
 * The start of the server: puts every record, process and file that an earlier one has left into a state that this one
 * can go on from, however it ended. Nothing that a record names is thrown away as long as it can be used.
 */
import { readdir, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { recover } from '@aenv/lifecycle';
import type { Vm, VmRecord } from '@aenv/vmm';
import type { Context } from './options.ts';
import { type SandboxRow, topOf } from './sandbox-table.ts';
import type { Sandboxes } from './sandboxes.ts';
import type { TemplateTable } from './template-table.ts';

export interface RecoveryReport {
  /** Sandboxes whose VM runs on. */
  adopted: number;
  paused: number;
  /** Ids of sandboxes that were running or paused and cannot be saved. */
  lost: string[];
  failedBuilds: number;
  /** VMs, slots and directories without an owner. */
  removed: number;
}

export async function recoverState(
  context: Context,
  sandboxes: Sandboxes,
  templates: TemplateTable,
): Promise<RecoveryReport> {
  const report: RecoveryReport = { adopted: 0, paused: 0, lost: [], failedBuilds: 0, removed: 0 };
  context.ledger.interruptAll();
  failBuilds(context, templates, report);
  const owned = new Map<string, number>();
  for (const row of sandboxes.table.all()) {
    const vm = await recoverSandbox(context, sandboxes, templates, row, report);
    if (vm) owned.set(vm.record.id, vm.record.slot);
  }
  await removeUnownedVms(context, owned, report);
  await removeUnownedFiles(context, sandboxes, templates, owned, report);
  context.logger.info({ ...report }, 'recovered');
  return report;
}

function failBuilds({ clock }: Context, templates: TemplateTable, report: RecoveryReport): void {
  for (const build of templates.builds()) {
    if (build.status !== 'building') continue;
    const now = clock.now();
    const message = 'the server was restarted during the build';
    templates.putBuild({
      ...build,
      status: 'error',
      updatedAt: now,
      finishedAt: now,
      reason: { message, step: 'base' },
    });
    templates.log(build.id, { timestamp: now, level: 'error', message });
    report.failedBuilds += 1;
  }
}

/** Returns the VM when it runs on. */
async function recoverSandbox(
  context: Context,
  sandboxes: Sandboxes,
  templates: TemplateTable,
  row: SandboxRow,
  report: RecoveryReport,
): Promise<Vm | undefined> {
  const { sandboxStore, clock, logger } = context;
  const saved = await isSaved(context, row);
  // A VM that is not to go on must not run for a moment: it would write to the disk that the saved state stands on.
  const mayGoOn = recover({ phase: row.phase, alive: true, saved }).kind === 'adopt';
  const vm = mayGoOn && row.run ? await adopt(context, row.run.vm) : undefined;
  const decision = recover({ phase: row.phase, alive: vm !== undefined, saved });
  const build = templates.build(row.buildId);
  if (decision.kind === 'remove' || !build) {
    if (decision.kind === 'remove' && !decision.lost) {
      sandboxes.table.end(row.id, clock.now(), row.phase === 'starting' ? 'start_failed' : 'killed');
    } else {
      logger.error(
        { sandboxId: row.id, phase: row.phase },
        'a sandbox is lost: neither its VM nor a saved state is there',
      );
      sandboxes.table.end(row.id, clock.now(), 'host_restart');
      report.lost.push(row.id);
    }
    return undefined;
  }
  if (decision.kind === 'keep_paused' || !vm) {
    row.phase = 'paused';
    row.run = undefined;
    sandboxes.readopt(row, build, undefined);
    report.paused += 1;
    return undefined;
  }
  takeDiskOf(row, vm);
  row.phase = 'running';
  await sandboxStore.discardStagedPause(row.id);
  await sandboxStore.discardPause(row.id);
  sandboxes.readopt(row, build, vm);
  report.adopted += 1;
  return vm;
}

/** The server may have died between a seal on the disk and the record of it; the VM knows where its writes go. */
function takeDiskOf(row: SandboxRow, vm: Vm): void {
  const top = basename(vm.record.diskFile, '.qcow2');
  if (top !== topOf(row)) row.layers = [...row.layers, top];
  if (row.run) row.run = { ...row.run, vm: vm.record };
}

/** A VM that cannot be reached is ended with those that nobody owns: one bad VM must not keep the server from starting. */
async function adopt({ driver, logger }: Context, record: VmRecord): Promise<Vm | undefined> {
  const attempt = async () => {
    const vm = await driver.adopt(record);
    await vm?.resume();
    return vm;
  };
  try {
    // A sandbox depends on it, so one refusal does not count.
    return await attempt().catch(attempt);
  } catch (err) {
    logger.error({ err, vm: record.id }, 'a VM runs, but does not obey');
    return undefined;
  }
}

async function isSaved({ sandboxStore, logger }: Context, { id }: SandboxRow): Promise<boolean> {
  try {
    return (await sandboxStore.paused(id)) !== undefined;
  } catch (err) {
    // A damaged one is kept on disk with its sandbox, so that a newer server or a person may still read it.
    logger.error({ err, sandboxId: id }, 'the saved state of a sandbox cannot be read');
    return true;
  }
}

async function removeUnownedVms(
  { launcher, logger }: Context,
  owned: ReadonlyMap<string, number>,
  report: RecoveryReport,
): Promise<void> {
  for (const vm of await launcher.listVms()) {
    if (owned.has(vm.id)) continue;
    logger.warn({ vm: vm.id, pid: vm.pid }, 'ending a VM that no sandbox owns');
    await launcher.killVm(vm.id, 0);
    report.removed += 1;
  }
  const slots = new Set(owned.values());
  for (const slot of await launcher.listSlots()) {
    if (slots.has(slot.index)) continue;
    await launcher.destroySlot(slot.index);
    report.removed += 1;
  }
}

async function removeUnownedFiles(
  { templateStore, sandboxStore, layerStore, layers, home }: Context,
  sandboxes: Sandboxes,
  templates: TemplateTable,
  owned: ReadonlyMap<string, number>,
  report: RecoveryReport,
): Promise<void> {
  const ready = templates.builds().filter(({ status }) => status === 'ready');
  const builds = await templateStore.removeUnowned(new Set(ready.map(({ id }) => id)));
  const rows = sandboxes.table.all();
  for (const { id, layers: used } of rows) {
    layers.release(
      id,
      layers.of(id).filter((layer) => !used.includes(layer)),
    );
  }
  const held = layers.keep(new Set([...ready, ...rows].map(({ id }) => id)));
  const unheld = await layerStore.removeUnowned(held);
  const directories = await sandboxStore.removeUnowned(new Set(rows.map(({ id }) => id)));
  const runs = (await readdir(home.vms)).filter((name) => !owned.has(name));
  for (const name of runs) await rm(join(home.vms, name), { recursive: true, force: true });
  report.removed += builds.length + directories.length + unheld.length + runs.length;
}
