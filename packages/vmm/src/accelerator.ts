/**
 * Whether this machine's KVM runs a guest. To open /dev/kvm, and even to create a VM on it, proves little: there are hosts
 * on which a stock kernel then never finishes booting. So a tiny guest is really booted, in the way all VMs are started.
 */
import { createHash } from 'node:crypto';
import { chmod, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { release } from 'node:os';
import { join } from 'node:path';
import type { Launcher } from '@aenv/linux';
import { AenvError, isSystemError, pollUntil, randomBase36, writeFileAtomic } from '@aenv/std';
import { initramfs } from './initramfs.ts';
import { lastLines, readLog, VmExits } from './qemu/exits.ts';
import { type Accelerator, CONSOLE_LOG, probeArguments, vmLimits } from './qemu/machine.ts';
import { asRecord } from './qemu/qmp-lines.ts';
import { ALIVE_TEXT, aliveProgram } from './tiny-program.ts';

/** KVM needs less than a second; where guests are interpreted instead, they do not get there in a minute. */
const PROBE_TIMEOUT_MS = 8000;
const POLL_MS = 20;
const RESOURCES = { cpus: 1, memoryMb: 128 };

export interface ProbeRequest {
  launcher: Launcher;
  /** A kernel that the VMM's user may read. */
  kernel: string;
  /** AENV_HOME: takes the probe's files while it runs, and its answer. */
  home: string;
  /** Device of KVM; `/dev/kvm` by default. */
  device?: string;
}

export interface ProbeResult {
  accelerator: Accelerator;
  /** Why, in words for people. */
  reason: string;
}

/**
 * KVM when a guest really boots with it, else TCG and the reason. The answer is kept in AENV_HOME until the host's kernel,
 * its KVM device or the guest's kernel changes. Rejects only when the probe itself could not be made.
 */
export async function probeAccelerator(request: ProbeRequest): Promise<ProbeResult> {
  const { launcher, kernel, home, device = '/dev/kvm' } = request;
  const facts = await deviceFacts(device);
  if (facts === undefined) return { accelerator: 'tcg', reason: `${device} does not exist` };
  const key = await circumstances(facts, kernel);
  const answerFile = join(home, 'accelerator.json');
  const known = await readAnswer(answerFile, key);
  if (known) return known;
  const problem = await bootProblem(launcher, kernel, home);
  const result: ProbeResult =
    problem === undefined
      ? { accelerator: 'kvm', reason: 'a guest booted with it' }
      : { accelerator: 'tcg', reason: `${device} exists, but ${problem}` };
  await writeFileAtomic(answerFile, `${JSON.stringify({ key, ...result })}\n`);
  return result;
}

/** What of the device may decide the answer; undefined when there is none. */
async function deviceFacts(path: string): Promise<string | undefined> {
  try {
    const { mode, uid, gid, rdev } = await stat(path);
    return [mode, uid, gid, rdev].join(' ');
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw AenvError.from(error);
  }
}

async function circumstances(device: string, kernel: string): Promise<string> {
  const digest = createHash('sha256')
    .update(await readFile(kernel))
    .digest('hex');
  const cpu = /^model name\s*:.*$/m.exec(await readFile('/proc/cpuinfo', 'utf8'))?.[0] ?? '';
  return createHash('sha256')
    .update(JSON.stringify([release(), cpu, device, digest]))
    .digest('hex');
}

async function readAnswer(file: string, key: string): Promise<ProbeResult | undefined> {
  try {
    const answer = asRecord(JSON.parse(await readFile(file, 'utf8')));
    const { accelerator, reason } = answer ?? {};
    if (answer?.key !== key || typeof reason !== 'string') return undefined;
    return accelerator === 'kvm' || accelerator === 'tcg' ? { accelerator, reason } : undefined;
  } catch {
    // Missing or damaged: it is probed again.
    return undefined;
  }
}

/** Boots a guest with KVM that says one line and powers off. Undefined when it did, else what went wrong. */
async function bootProblem(launcher: Launcher, kernel: string, home: string): Promise<string | undefined> {
  const id = `probe-${randomBase36(8)}`;
  const directory = join(home, id);
  const slot = await launcher.createSlot({ internet: false });
  const exits = new VmExits(launcher);
  try {
    await mkdir(directory, { mode: 0o711 });
    const image = join(directory, 'initramfs');
    await writeFile(image, initramfs(aliveProgram(), []));
    await chmod(image, 0o444);
    let ended = false;
    void exits.expect(id).then(() => {
      ended = true;
    });
    const logFile = join(directory, CONSOLE_LOG);
    await launcher.spawnVm({
      id,
      slot: slot.index,
      directory,
      own: [],
      argv: probeArguments('kvm', RESOURCES, kernel, image),
      limits: vmLimits('kvm', RESOURCES),
      logFile,
    });
    return await answerOf(logFile, () => ended);
  } finally {
    exits.close();
    await launcher.killVm(id, 0);
    await launcher.destroySlot(slot.index);
    await rm(directory, { recursive: true, force: true });
  }
}

/** Follows the console until the guest has spoken, QEMU has ended or time is up. */
async function answerOf(logFile: string, hasEnded: () => boolean): Promise<string | undefined> {
  const look = async () => {
    // In this order: what was written before the end is read after it.
    const ended = hasEnded();
    const log = await readLog(logFile);
    if (log.includes(ALIVE_TEXT)) return { problem: undefined };
    return ended ? { problem: `QEMU ended before the guest had booted: ${lastLines(log)}` } : undefined;
  };
  try {
    return (await pollUntil('the boot', look, { intervalMs: POLL_MS, timeoutMs: PROBE_TIMEOUT_MS })).problem;
  } catch (error) {
    if (!(error instanceof AenvError) || error.code !== 'timeout') throw error;
    return `a guest did not finish booting within ${PROBE_TIMEOUT_MS / 1000} s`;
  }
}
