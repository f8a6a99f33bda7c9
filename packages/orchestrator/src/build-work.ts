/** The build of a template: boot the disk, prepare the guest, capture it. Nothing of a failed one is left. */
import { join } from 'node:path';
import type { MachineShape } from '@aenv/snapshot';
import { AenvError, sleep } from '@aenv/std';
import type { Vm } from '@aenv/vmm';
import type { Base } from './base-disks.ts';
import { consoleTail } from './console.ts';
import type { BuildStart, LogLevel } from './engine.ts';
import { SYNC_MS } from './guest-port.ts';
import { dismantle, endedEarly, introduce, newVmId } from './launch.ts';
import type { Context } from './options.ts';
import type { Run } from './sandbox-table.ts';
import type { SlotPool } from './slot-pool.ts';
import type { BuildRow, GuestSettings } from './template-table.ts';

/** Between two runs of the ready command, milliseconds. */
const READY_INTERVAL_MS = 500;
/** How long a start command without a ready command runs before the capture, milliseconds; E2B waits as long. */
const START_WITHOUT_READY_MS = 20_000;
/** A run of the ready command may take this long, milliseconds. */
const READY_ATTEMPT_MS = 30_000;

/** How much of the console goes into the log of a build that failed. */
const CONSOLE_LINES = 30;

export interface Capture {
  build: BuildRow;
  guest: GuestSettings;
  base: Base;
  request: BuildStart;
  log: (level: LogLevel, message: string) => void;
  signal: AbortSignal;
}

/** Boots `base`, runs the commands of the request, and publishes the captured state as the files of the build. */
export async function capture(context: Context, slots: SlotPool, work: Capture): Promise<void> {
  const { build, base } = work;
  const machine: MachineShape = {
    driver: context.driver.name,
    cpus: build.cpuCount,
    memoryMb: build.memoryMb,
    ...context.machine,
  };
  const files = await context.templateStore.stage(build.id, base.disk);
  try {
    const slot = await slots.take({ internet: true });
    const id = newVmId(build.id);
    const directory = join(context.home.vms, id);
    let vm: Vm | undefined;
    try {
      vm = await context.driver.boot({
        id,
        slot,
        resources: { cpus: machine.cpus, memoryMb: machine.memoryMb },
        directory,
        memoryFile: files.memory,
        diskFile: files.disk,
        kernel: machine.kernel,
        initramfs: machine.initramfs,
        kernelArguments: machine.kernelArguments,
        memory: 'shared',
      });
      await vm.resume();
      await untilEnded(vm, work.signal, prepare(context, work, { vm, run: { slot, vm: vm.record } }));
      await vm.stop();
      await vm.saveTemplate(files.state);
    } catch (error) {
      const console = await consoleTail(directory, 0);
      for (const { message } of console.slice(-CONSOLE_LINES)) work.log('info', `console: ${message}`);
      throw error;
    } finally {
      await dismantle(context, slots, { slot, vm: { id, directory } }, vm);
    }
    await context.templateStore.publish(build.id, base.disk, machine, context.clock.now());
  } catch (error) {
    await context.templateStore.discardStaging(build.id);
    throw error;
  }
}

/** Settles as `work` does, or rejects as soon as the VM ends or the build is given up. */
async function untilEnded(vm: Vm, signal: AbortSignal, work: Promise<void>): Promise<void> {
  const given = Promise.withResolvers<never>();
  const giveUp = () => given.reject(signal.reason);
  signal.addEventListener('abort', giveUp, { once: true });
  if (signal.aborted) giveUp();
  const ended = vm.ended.then((end) => Promise.reject(endedEarly(end)));
  for (const promise of [work, given.promise, ended]) promise.catch(() => {});
  try {
    await Promise.race([work, given.promise, ended]);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}

async function prepare(context: Context, work: Capture, launched: { vm: Vm; run: Run }): Promise<void> {
  const { build, guest, request, log } = work;
  const address = launched.run.slot.hostAddress;
  log('info', 'booting');
  await introduce(context, launched, guest.initKey, {
    occasion: 'booted',
    sandboxId: build.id,
    templateId: build.templateId,
    hostname: 'aenv',
    envVars: guest.env,
    user: guest.user,
    workdir: guest.workdir,
  });
  log('info', 'the guest daemon answers');
  await runCommands(context, work, address, request);
  await context.guests.sync(address, guest.initKey, SYNC_MS);
}

async function runCommands(
  context: Context,
  work: Capture,
  address: string,
  { startCmd, readyCmd }: BuildStart,
): Promise<void> {
  const started = startCmd === undefined ? undefined : (await start(context, work, address, startCmd)).ended;
  if (readyCmd !== undefined) {
    const ready = untilReady(context, work, address, readyCmd);
    ready.catch(() => {});
    await Promise.race([ready, started?.then(() => ready) ?? ready]);
  } else if (started) {
    await Promise.race([started, sleep(START_WITHOUT_READY_MS, work.signal)]);
  }
}

/** Starts the start command. `ended` rejects when it fails before the capture. */
async function start(
  context: Context,
  { guest, log }: Capture,
  address: string,
  script: string,
): Promise<{ ended: Promise<void> }> {
  log('info', `start command: ${script}`);
  const { exit } = await context.guests.start(address, {
    script,
    user: guest.user,
    cwd: guest.workdir,
    tag: 'start-cmd',
    onOutput: (stream, text) => log(stream === 'stderr' ? 'warn' : 'info', text.trimEnd()),
  });
  const failed = exit.then(
    (code) => {
      if (code !== 0) throw new AenvError('template_build_failed', `the start command exited with code ${code}`);
      log('info', 'the start command exited with code 0');
    },
    // Its stream ends with the capture.
    () => {},
  );
  failed.catch(() => {});
  return { ended: failed };
}

async function untilReady(
  context: Context,
  { guest, log, signal }: Capture,
  address: string,
  script: string,
): Promise<void> {
  log('info', `waiting for the ready command: ${script}`);
  const limit = context.limits.readyTimeoutSeconds;
  const end = performance.now() + limit * 1000;
  for (;;) {
    const { exit } = await context.guests.start(address, {
      script,
      user: guest.user,
      cwd: guest.workdir,
      timeoutMs: READY_ATTEMPT_MS,
    });
    const code = await exit;
    if (code === 0) return;
    if (performance.now() >= end) {
      throw new AenvError(
        'template_build_failed',
        `the ready command did not succeed within ${limit} s; it exited with code ${code} last`,
        { remedy: 'Try the command in a sandbox of the same image, or raise template.ready_timeout.' },
      );
    }
    await sleep(READY_INTERVAL_MS, signal);
  }
}
