/**
 * Memory, processor and process limits of VMs by cgroup: version 2, or version 1 where that is what the host has. A host
 * that gives no writable cgroups (some containers) runs VMs without them; `problem` says so.
 */
import { existsSync, readFileSync } from 'node:fs';
import { access, constants, mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { AenvError, isSystemError, pollUntil } from '@aenv/std';
import type { VmLimits } from '../launcher-api.ts';

const MOUNT = '/sys/fs/cgroup';
const PARENT = 'aenv';
const CONTROLLERS = ['memory', 'cpu', 'pids'] as const;
const CPU_PERIOD_US = 100_000;

export type CgroupVersion = 1 | 2;

/** A pair of file and value; `optional` where a kernel may lack the file. */
interface Setting {
  controller: (typeof CONTROLLERS)[number];
  file: string;
  value: string;
  optional?: boolean;
}

const SETTINGS: Record<CgroupVersion, (limits: VmLimits) => Setting[]> = {
  1: ({ memoryBytes, cpus, pids }) => [
    { controller: 'memory', file: 'memory.limit_in_bytes', value: String(memoryBytes) },
    { controller: 'memory', file: 'memory.memsw.limit_in_bytes', value: String(memoryBytes), optional: true },
    { controller: 'cpu', file: 'cpu.cfs_period_us', value: String(CPU_PERIOD_US) },
    { controller: 'cpu', file: 'cpu.cfs_quota_us', value: String(Math.round(cpus * CPU_PERIOD_US)) },
    { controller: 'pids', file: 'pids.max', value: String(pids) },
  ],
  2: ({ memoryBytes, cpus, pids }) => [
    { controller: 'memory', file: 'memory.max', value: String(memoryBytes) },
    { controller: 'memory', file: 'memory.oom.group', value: '1', optional: true },
    { controller: 'cpu', file: 'cpu.max', value: `${Math.round(cpus * CPU_PERIOD_US)} ${CPU_PERIOD_US}` },
    { controller: 'pids', file: 'pids.max', value: String(pids) },
  ],
};

/** Which version has the memory controller; undefined when none is mounted. */
export function cgroupVersion(): CgroupVersion | undefined {
  if (existsSync(`${MOUNT}/memory/memory.limit_in_bytes`)) return 1;
  if (existsSync(`${MOUNT}/cgroup.controllers`)) return 2;
  return undefined;
}

/** Why VMs cannot be limited by cgroups here; undefined when they can. Changes nothing. */
export async function cgroupProblem(): Promise<string | undefined> {
  const version = cgroupVersion();
  if (version === undefined) return 'no cgroup hierarchy with a memory controller is mounted on /sys/fs/cgroup';
  if (version === 2) {
    const missing = missingControllers(`${MOUNT}/cgroup.controllers`);
    if (missing.length > 0) return `the cgroup controllers ${missing.join(', ')} are not available`;
  }
  for (const parent of parents(version)) {
    const place = existsSync(parent) ? parent : parent.slice(0, -PARENT.length - 1);
    try {
      await access(place, constants.W_OK);
    } catch (error) {
      return `${place} cannot be written (${error instanceof Error ? error.message : error})`;
    }
  }
  return undefined;
}

function missingControllers(file: string): string[] {
  const words = readFileSync(file, 'utf8').trim().split(/\s+/);
  return CONTROLLERS.filter((controller) => !words.includes(controller));
}

/** The directories that hold the cgroups of VMs. */
function parents(version: CgroupVersion): string[] {
  if (version === 2) return [`${MOUNT}/${PARENT}`];
  return CONTROLLERS.map((controller) => `${MOUNT}/${controller}/${PARENT}`);
}

export class Cgroups {
  /** Why there are none; undefined when they work. */
  readonly problem: string | undefined;
  readonly #version: CgroupVersion;

  private constructor(version: CgroupVersion, problem: string | undefined) {
    this.#version = version;
    this.problem = problem;
  }

  static async open(): Promise<Cgroups> {
    const version = cgroupVersion() ?? 2;
    let problem = await cgroupProblem();
    if (!problem) problem = await prepare(version).then(() => undefined, describe);
    return new Cgroups(version, problem);
  }

  /** Makes a cgroup with these limits; returns the files through which a process joins it (none without cgroups). */
  async create(name: string, limits: VmLimits): Promise<string[]> {
    if (this.problem) return [];
    for (const parent of parents(this.#version)) await mkdir(`${parent}/${name}`, { recursive: true });
    for (const setting of SETTINGS[this.#version](limits)) await this.#apply(name, setting);
    return parents(this.#version).map((parent) => `${parent}/${name}/cgroup.procs`);
  }

  /** True when the kernel's memory limit ended a process of the cgroup. */
  async oomKilled(name: string): Promise<boolean> {
    if (this.problem) return false;
    const file = this.#version === 1 ? 'memory.oom_control' : 'memory.events';
    const text = await readFile(`${this.#directory('memory', name)}/${file}`, 'utf8').catch(() => '');
    return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0) > 0;
  }

  /** Names of those without a process. */
  async emptyOnes(): Promise<string[]> {
    if (this.problem) return [];
    const [parent = ''] = parents(this.#version);
    const names = (await readdir(parent, { withFileTypes: true })).filter((entry) => entry.isDirectory());
    return names.map(({ name }) => name).filter((name) => isEmpty(`${parent}/${name}/cgroup.procs`));
  }

  /** Removes an empty cgroup; no error when it is gone already. The kernel needs a moment after the last process. */
  async remove(name: string): Promise<void> {
    if (this.problem) return;
    for (const parent of parents(this.#version)) {
      await pollUntil(`the end of the cgroup ${name}`, () => tryRemove(`${parent}/${name}`), {
        intervalMs: 10,
        timeoutMs: 2000,
      });
    }
  }

  #directory(controller: string, name: string): string {
    return this.#version === 1 ? `${MOUNT}/${controller}/${PARENT}/${name}` : `${MOUNT}/${PARENT}/${name}`;
  }

  async #apply(name: string, { controller, file, value, optional }: Setting): Promise<void> {
    const path = `${this.#directory(controller, name)}/${file}`;
    if (optional && !existsSync(path)) return;
    try {
      await writeFile(path, value);
    } catch (error) {
      throw new AenvError('internal', `the limit ${file}=${value} could not be set: ${describe(error)}`);
    }
  }
}

async function prepare(version: CgroupVersion): Promise<void> {
  for (const parent of parents(version)) await mkdir(parent, { recursive: true });
  if (version === 1) return;
  for (const directory of [MOUNT, `${MOUNT}/${PARENT}`]) {
    const file = `${directory}/cgroup.subtree_control`;
    const missing = missingControllers(file);
    if (missing.length > 0) await writeFile(file, missing.map((name) => `+${name}`).join(' '));
  }
}

function isEmpty(file: string): boolean {
  try {
    return readFileSync(file, 'utf8') === '';
  } catch {
    // It has just been removed.
    return false;
  }
}

async function tryRemove(path: string): Promise<true | undefined> {
  try {
    await rmdir(path);
    return true;
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return true;
    if (isSystemError(error, 'EBUSY')) return undefined;
    throw error;
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
