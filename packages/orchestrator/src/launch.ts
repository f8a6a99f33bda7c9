/** Puts a VM together from a template (and saved state), and takes it apart again. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { EgressPolicy, Slot } from '@aenv/linux';
import { blankMemory, type GuestState } from '@aenv/snapshot';
import { AenvError, randomBase36, withDeadline } from '@aenv/std';
import type { BootRequest, Vm, VmEnd, VmmDriver, VmRecord } from '@aenv/vmm';
import type { GuestIdentity } from './guest-port.ts';
import type { Context } from './options.ts';
import type { Run } from './sandbox-table.ts';
import type { SlotPool } from './slot-pool.ts';

/** How long a guest may take to answer after its processors run, milliseconds. */
const GUEST_DEADLINE_MS = 30_000;

export interface LaunchRequest {
  sandboxId: string;
  buildId: string;
  /** The layer that takes the guest's writes. */
  diskFile: string;
  policy: EgressPolicy;
  /** Absent: it boots from its disk. */
  state: GuestState | undefined;
}

export interface Launched {
  vm: Vm;
  run: Run;
  /** How its guest will find itself. */
  occasion: 'booted' | 'woken';
}

/** A name for a run of the VM of a sandbox or build: every start has its own, and tells whose it is. */
export function newVmId(owner: string): string {
  return `${owner}-${randomBase36(4)}`;
}

/** The sandbox or build that a VM was started for. */
export function ownerOfVm(vmId: string): string {
  return vmId.slice(0, vmId.lastIndexOf('-'));
}

/** Restores or boots a VM, which stands still yet. When it fails, nothing of it is left. */
export async function launch(context: Context, slots: SlotPool, request: LaunchRequest): Promise<Launched> {
  const { machine } = await context.templateStore.manifest(request.buildId);
  if (machine.driver !== context.driver.name) {
    throw new AenvError(
      'restore_failed',
      `built with the ${machine.driver} driver, but this server runs ${context.driver.name}`,
      {
        remedy: 'Pull the image again to build a template for this driver.',
      },
    );
  }
  const { state } = request;
  const memoryFile = state?.memory.base ?? (await blankMemory(context.home, machine.memoryMb));
  const slot = await slots.take(request.policy);
  const id = newVmId(request.sandboxId);
  const directory = join(context.home.vms, id);
  const giveUp = async () => {
    slots.release(slot);
    await rm(directory, { recursive: true, force: true });
  };
  const start = {
    id,
    slot,
    resources: { cpus: machine.cpus, memoryMb: machine.memoryMb },
    directory,
    memoryFile,
    diskFile: request.diskFile,
    kernel: machine.kernel,
    initramfs: machine.initramfs,
    kernelArguments: machine.kernelArguments,
  };
  const vm = await fenced(context, { vm: id, giveUp }, wake(context.driver, start, state));
  return { vm, run: { slot, vm: vm.record }, occasion: state ? 'woken' : 'booted' };
}

function wake(driver: VmmDriver, start: Omit<BootRequest, 'memory'>, state: GuestState | undefined): Promise<Vm> {
  if (!state) return driver.boot({ ...start, memory: 'private' });
  const { diff } = state.memory;
  return driver.restore({ ...start, stateFile: state.state, ...(diff === undefined ? {} : { memoryDiff: diff }) });
}

/**
 * Waits for a VM, but not for ever. One that comes up after its operation has ended belongs to nobody: it is ended, and only
 * then are its slot and directory free.
 */
async function fenced(
  { limits, logger, launcher }: Context,
  { vm: id, giveUp }: { vm: string; giveUp: () => Promise<void> },
  launching: Promise<Vm>,
): Promise<Vm> {
  try {
    return await withDeadline(launching, limits.launchTimeoutSeconds * 1000, 'the start of the VM');
  } catch (error) {
    if (!(error instanceof AenvError) || error.code !== 'timeout') {
      await giveUp();
      throw error;
    }
    logger.warn({ vm: id }, 'a VM does not come up in time: it is ended');
    // It may come up all the same, before or after it could be ended.
    void Promise.allSettled([launcher.killVm(id, 0), launching])
      .then(([, late]) => (late.status === 'fulfilled' ? late.value.kill(0) : undefined))
      .then(giveUp)
      .catch((err: unknown) => logger.error({ err, vm: id }, 'what a late VM left is removed at the next start'));
    throw error;
  }
}

/** What identifies a VM to take apart; it need not have come up. */
export interface Remains {
  slot: Slot;
  vm: Pick<VmRecord, 'id' | 'directory'>;
}

/** Ends the VM, if there is one, and frees what it held. */
export async function dismantle(context: Context, slots: SlotPool, run: Remains, vm?: Vm): Promise<void> {
  if (vm) await vm.kill(0);
  else await context.launcher.killVm(run.vm.id, 0);
  slots.release(run.slot);
  await rm(run.vm.directory, { recursive: true, force: true });
}

/** An error of its own for a VM that ended while something waited for its guest. */
export function endedEarly(end: VmEnd): AenvError {
  return new AenvError('sandbox_start_failed', `the VM ended before its guest answered (${end.cause}): ${end.detail}`);
}

/** Waits for the guest daemon and gives it its identity; fails at once when the VM dies meanwhile. */
export async function introduce(
  context: Context,
  { vm, run }: Omit<Launched, 'occasion'>,
  initKey: string,
  identity: GuestIdentity,
): Promise<void> {
  const dead = new AbortController();
  const died = vm.ended.then((end) => {
    dead.abort();
    throw endedEarly(end);
  });
  const options = { timeoutMs: GUEST_DEADLINE_MS, signal: dead.signal };
  const greeted = context.guests.greet(run.slot.hostAddress, initKey, identity, options);
  for (const promise of [died, greeted]) promise.catch(() => {});
  await Promise.race([greeted, died]);
}
