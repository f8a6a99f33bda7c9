/** What this machine has and lacks, for `aenv doctor` and for the server's own start. */
import { access, readFile, statfs } from 'node:fs/promises';
import { availableParallelism, freemem, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { type Launcher, lookUpProgram } from '@aenv/linux';
import type { DoctorFinding } from '@aenv/orchestrator';
import { AenvError } from '@aenv/std';
import type { Config } from './config/settings.ts';

const GIB = 1 << 30;
/** Below the first nothing can be built; below the second it soon cannot. */
const DISK_FAIL_BYTES = 1 * GIB;
const DISK_WARN_BYTES = 5 * GIB;
const MEMORY_WARN_BYTES = 1 * GIB;
const VERSION_TIMEOUT_MS = 15_000;

interface Tool {
  name: string;
  /** How it is asked for its version; absent: that it exists is enough. */
  versionArgs?: string[];
  version?: RegExp;
  minimum?: string;
  package: string;
  why: string;
}

const TOOLS: Tool[] = [
  {
    name: 'qemu-system-x86_64',
    versionArgs: ['--version'],
    version: /version (\d+\.\d+(?:\.\d+)?)/,
    minimum: '8.2',
    package: 'qemu-system-x86',
    why: 'runs the virtual machines',
  },
  {
    name: 'qemu-img',
    versionArgs: ['--version'],
    version: /version (\d+\.\d+(?:\.\d+)?)/,
    minimum: '8.2',
    package: 'qemu-utils',
    why: 'makes disk layers',
  },
  {
    name: 'mke2fs',
    versionArgs: ['-V'],
    version: /mke2fs (\d+\.\d+(?:\.\d+)?)/,
    minimum: '1.47.1',
    package: 'e2fsprogs',
    why: 'makes root disks',
  },
  { name: 'ip', package: 'iproute2', why: 'makes network namespaces' },
  { name: 'nft', package: 'nftables', why: 'holds network policies' },
  { name: 'setpriv', package: 'util-linux', why: 'takes privileges away from virtual machines' },
];

/** Compares dotted versions: true when `found` is `minimum` or newer. */
export function isAtLeast(found: string, minimum: string): boolean {
  const [have, need] = [found, minimum].map((text) => text.split('.').map(Number));
  for (const [index, wanted] of (need ?? []).entries()) {
    const part = have?.[index] ?? 0;
    if (part !== wanted) return part > wanted;
  }
  return true;
}

const remedyFor = (tool: Tool): string =>
  `Run: make setup (it installs ${tool.package}, on Debian 12 from bookworm-backports).`;

async function checkTool(launcher: Launcher, tool: Tool): Promise<DoctorFinding> {
  const check = tool.name;
  if (!lookUpProgram(tool.name))
    return { check, status: 'fail', detail: `not installed; it ${tool.why}`, remedy: remedyFor(tool) };
  if (!tool.versionArgs) return { check, status: 'ok', detail: 'installed' };
  const { stdout, stderr } = await launcher.run({
    tool: tool.name,
    args: tool.versionArgs,
    timeoutMs: VERSION_TIMEOUT_MS,
  });
  const version = tool.version?.exec(stdout + stderr)?.[1] ?? '';
  if (isAtLeast(version, tool.minimum ?? '0')) return { check, status: 'ok', detail: version };
  const detail = `${version || 'of unknown version'}; ${tool.minimum} or newer is needed`;
  return { check, status: 'fail', detail, remedy: remedyFor(tool) };
}

async function checkDisk(home: string): Promise<DoctorFinding> {
  const { bavail, bsize } = await statfs(home);
  const free = bavail * bsize;
  const detail = `${(free / GIB).toFixed(1)} GiB free in ${home}`;
  if (free >= DISK_WARN_BYTES) return { check: 'disk', status: 'ok', detail };
  return {
    check: 'disk',
    status: free < DISK_FAIL_BYTES ? 'fail' : 'warn',
    detail,
    remedy: 'Delete sandboxes and templates that nobody needs, or move AENV_HOME to a larger disk.',
  };
}

function checkMemory(): DoctorFinding {
  const detail = `${(freemem() / GIB).toFixed(1)} of ${(totalmem() / GIB).toFixed(1)} GiB free, ${availableParallelism()} processors`;
  if (freemem() >= MEMORY_WARN_BYTES) return { check: 'memory', status: 'ok', detail };
  const remedy = 'Pause sandboxes, or give templates less memory (template.memory_mb).';
  return { check: 'memory', status: 'warn', detail, remedy };
}

async function checkTun(): Promise<DoctorFinding> {
  const check = 'tun';
  try {
    await access('/dev/net/tun');
    return { check, status: 'ok', detail: '/dev/net/tun exists' };
  } catch {
    const remedy = 'Run: modprobe tun. In a container, pass the device in.';
    return { check, status: 'fail', detail: '/dev/net/tun is missing; guests have no network', remedy };
  }
}

async function checkCgroups(): Promise<DoctorFinding> {
  const check = 'cgroups';
  const version2 = await readFile('/sys/fs/cgroup/cgroup.controllers', 'utf8').catch(() => '');
  if (/\bmemory\b/.test(version2)) return { check, status: 'ok', detail: 'version 2' };
  const version1 = await access('/sys/fs/cgroup/memory').then(
    () => true,
    () => false,
  );
  if (version1) return { check, status: 'ok', detail: 'version 1' };
  const detail = 'no memory controller is mounted; a virtual machine can use more memory than it was given';
  return { check, status: 'warn', detail, remedy: 'Mount cgroup version 2 at /sys/fs/cgroup.' };
}

async function checkKernel(kernelDirectory: string): Promise<DoctorFinding> {
  const check = 'guest kernel';
  try {
    const version = (await readFile(join(kernelDirectory, 'version'), 'utf8')).trim();
    return { check, status: 'ok', detail: version };
  } catch {
    const remedy = 'Run: make setup (or tools/fetch-kernel.sh).';
    return { check, status: 'fail', detail: `none in ${kernelDirectory}`, remedy };
  }
}

export interface Inspection {
  launcher: Launcher;
  config: Config;
  kernelDirectory: string;
  /** What the virtual machines run on, as it was found at the start. */
  accelerator: DoctorFinding;
}

/** Looks at everything; a check that breaks is a finding like any other. */
export async function inspectHost(inspection: Inspection): Promise<DoctorFinding[]> {
  const { launcher, config, kernelDirectory, accelerator } = inspection;
  const host: DoctorFinding = { check: 'host', status: 'ok', detail: `Linux ${release()}, Node ${process.versions.node}` };
  const checks: [string, Promise<DoctorFinding>][] = [
    ...TOOLS.map((tool): [string, Promise<DoctorFinding>] => [tool.name, checkTool(launcher, tool)]),
    ['tun', checkTun()],
    ['cgroups', checkCgroups()],
    ['guest kernel', checkKernel(kernelDirectory)],
    ['disk', checkDisk(config.home)],
  ];
  const findings = checks.map(([check, work]) =>
    work.catch((error): DoctorFinding => {
      const { message, remedy } = AenvError.from(error);
      return { check, status: 'fail', detail: message, remedy };
    }),
  );
  return [host, accelerator, ...(await Promise.all(findings)), checkMemory()];
}

/** Tools without which the server must not start: the error names the first that is missing or too old. */
export async function requireTools(launcher: Launcher): Promise<void> {
  for (const finding of await Promise.all(TOOLS.map((tool) => checkTool(launcher, tool)))) {
    if (finding.status === 'fail')
      throw new AenvError('host_missing_tool', `${finding.check} is ${finding.detail}`, { remedy: finding.remedy });
  }
}
