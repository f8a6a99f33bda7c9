/** What this machine offers to the launcher and its VMs, for the doctor's report. Looks only; leaves nothing changed. */
import { access, constants, readFile, stat, statfs } from 'node:fs/promises';
import { availableParallelism, release } from 'node:os';
import { dirname } from 'node:path';
import { lookUpProgram, runCommand } from './commands.ts';
import { type CgroupVersion, cgroupProblem, cgroupVersion } from './launcher/cgroups.ts';

/** A `problem` is a sentence for people; absent where all is well. */
export interface HostFacts {
  kernel: string;
  cpus: number;
  memory: { totalBytes: number; availableBytes: number };
  /** Of the file system that holds AENV_HOME. */
  disk: { totalBytes: number; freeBytes: number };
  /** Whether a VMM's user may open /dev/kvm. Whether guests really run with it only a trial boot can tell. */
  kvm: { problem?: string };
  cgroups: { version?: CgroupVersion; problem?: string };
  networkNamespaces: { problem?: string };
  nftables: { problem?: string };
  /** Whether the users of VMs and jobs can reach AENV_HOME by its path. */
  home: { problem?: string };
  /** First line of what a program says about its version; undefined for one that is not installed. */
  programs: Record<string, string | undefined>;
}

const VERSION_ARGUMENTS: Record<string, string> = {
  'qemu-system-x86_64': '--version',
  'qemu-img': '--version',
  mke2fs: '-V',
  resize2fs: '-V',
  ip: '-V',
  nft: '--version',
  nsenter: '--version',
  setpriv: '--version',
  prlimit: '--version',
  unshare: '--version',
  flock: '--version',
};

/** Inspects the machine. `home` is AENV_HOME and need not exist yet. Needs root for what it says about namespaces. */
export async function hostFacts(home: string): Promise<HostFacts> {
  const [memory, disk, kvm, cgroups, networkNamespaces, nftables, reachable, programs] = await Promise.all([
    memoryFacts(),
    diskFacts(home),
    problemOf(checkKvm()),
    problemOf(cgroupProblem()),
    problemOf(commandProblem('unshare', ['--net', '--', 'true'])),
    problemOf(commandProblem('nft', ['list', 'tables'])),
    problemOf(checkReachable(home)),
    versions(),
  ]);
  const version = cgroupVersion();
  return {
    kernel: release(),
    cpus: availableParallelism(),
    memory,
    disk,
    kvm,
    cgroups: { ...(version ? { version } : {}), ...cgroups },
    networkNamespaces,
    nftables,
    home: reachable,
    programs,
  };
}

async function problemOf(check: Promise<string | undefined>): Promise<{ problem?: string }> {
  const problem = await check.catch((error: unknown) => (error instanceof Error ? error.message : String(error)));
  return problem ? { problem } : {};
}

/** MemAvailable, not MemFree: the page cache can be given back. */
async function memoryFacts(): Promise<HostFacts['memory']> {
  const text = await readFile('/proc/meminfo', 'utf8');
  const bytes = (name: string) => Number(new RegExp(`^${name}: +(\\d+) kB$`, 'm').exec(text)?.[1] ?? 0) * 1024;
  return { totalBytes: bytes('MemTotal'), availableBytes: bytes('MemAvailable') };
}

async function diskFacts(home: string): Promise<HostFacts['disk']> {
  const { bsize, blocks, bavail } = await statfs(await nearestExisting(home));
  return { totalBytes: blocks * bsize, freeBytes: bavail * bsize };
}

async function nearestExisting(path: string): Promise<string> {
  for (let at = path; at !== '/'; at = dirname(at)) {
    if (await access(at).then(() => true, () => false)) return at; // biome-ignore format: one condition
  }
  return '/';
}

async function checkKvm(): Promise<string | undefined> {
  try {
    await access('/dev/kvm', constants.R_OK | constants.W_OK);
  } catch {
    return '/dev/kvm is missing or closed to root: no hardware virtualisation, VMs are emulated';
  }
  const { mode, gid } = await stat('/dev/kvm');
  if ((mode & 0o006) === 0o006 || ((mode & 0o060) === 0o060 && gid !== 0)) return undefined;
  return '/dev/kvm is open to root only, so no VMM can use it; chgrp kvm /dev/kvm && chmod 0660 /dev/kvm changes that';
}

async function commandProblem(name: string, args: string[]): Promise<string | undefined> {
  const { code, stderr } = await runCommand(name, args);
  return code === 0 ? undefined : `${name} ${args.join(' ')}: ${stderr.trim() || `exit code ${code}`}`;
}

async function checkReachable(home: string): Promise<string | undefined> {
  for (let at = dirname(home); at !== '/'; at = dirname(at)) {
    const { mode } = await stat(at).catch(() => ({ mode: 0o1 }));
    if ((mode & 0o001) === 0) return `${at} is closed to other users, so VMs cannot reach ${home}; chmod o+x ${at}`;
  }
  return undefined;
}

async function versions(): Promise<HostFacts['programs']> {
  const found = Object.entries(VERSION_ARGUMENTS).map(async ([name, argument]) => {
    if (!lookUpProgram(name)) return [name, undefined] as const;
    const { stdout, stderr } = await runCommand(name, [argument]);
    return [name, (stdout || stderr).split('\n')[0]] as const;
  });
  return Object.fromEntries(await Promise.all(found));
}
