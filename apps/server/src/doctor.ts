/** What this machine has and lacks: the report of `aenv doctor`, and what must be there for the server to start. */
import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type HostFacts, hostFacts } from '@aenv/linux';
import type { DoctorFinding } from '@aenv/orchestrator';
import { AenvError } from '@aenv/std';

const GIB = 1 << 30;
/** Below the first nothing can be built; below the second it soon cannot. */
const DISK_FAIL_BYTES = 1 * GIB;
const DISK_WARN_BYTES = 5 * GIB;
const MEMORY_WARN_BYTES = 1 * GIB;

/** Oldest versions that do; ARCHITECTURE.md says why. The others are asked for by being there. */
const MINIMUM_VERSIONS: Record<string, string> = {
  'qemu-system-x86_64': '8.2',
  'qemu-img': '8.2',
  mke2fs: '1.47.1',
};
const SETUP = 'Run: make setup (on Debian 12 it takes newer versions from bookworm-backports).';

/** Compares dotted versions: true when `found` is `minimum` or newer. */
export function isAtLeast(found: string, minimum: string): boolean {
  const have = found.split('.').map(Number);
  for (const [index, wanted] of minimum.split('.').map(Number).entries()) {
    const part = have[index] ?? 0;
    if (part !== wanted) return part > wanted;
  }
  return true;
}

/** `said` is the first line of what the program says about its version; undefined when it is not installed. */
export function programFinding(check: string, said: string | undefined): DoctorFinding {
  if (said === undefined) return { check, status: 'fail', detail: 'not installed', remedy: SETUP };
  const minimum = MINIMUM_VERSIONS[check];
  if (minimum === undefined) return { check, status: 'ok', detail: said };
  const version = /\d+(?:\.\d+)+/.exec(said)?.[0];
  if (version && isAtLeast(version, minimum)) return { check, status: 'ok', detail: version };
  const detail = `${version ?? 'of an unknown version'}; ${minimum} or newer is needed`;
  return { check, status: 'fail', detail, remedy: SETUP };
}

function diskFinding({ freeBytes, totalBytes }: HostFacts['disk'], home: string): DoctorFinding {
  const detail = `${(freeBytes / GIB).toFixed(1)} of ${(totalBytes / GIB).toFixed(1)} GiB free for ${home}`;
  if (freeBytes >= DISK_WARN_BYTES) return { check: 'disk', status: 'ok', detail };
  const status = freeBytes < DISK_FAIL_BYTES ? 'fail' : 'warn';
  const remedy = 'Delete sandboxes and templates that nobody needs, or move AENV_HOME to a larger disk.';
  return { check: 'disk', status, detail, remedy };
}

function memoryFinding({ availableBytes, totalBytes }: HostFacts['memory'], cpus: number): DoctorFinding {
  const size = `${(availableBytes / GIB).toFixed(1)} of ${(totalBytes / GIB).toFixed(1)} GiB available`;
  const detail = `${size}, ${cpus} processors`;
  if (availableBytes >= MEMORY_WARN_BYTES) return { check: 'memory', status: 'ok', detail };
  const remedy = 'Pause sandboxes, or give templates less memory (template.memory_mb).';
  return { check: 'memory', status: 'warn', detail, remedy };
}

interface Problem {
  problem?: string;
}

function factFinding(check: string, { problem }: Problem, status: 'warn' | 'fail', good: string): DoctorFinding {
  return problem === undefined ? { check, status: 'ok', detail: good } : { check, status, detail: problem };
}

async function tunFinding(): Promise<DoctorFinding> {
  const check = 'tun';
  try {
    await access('/dev/net/tun');
    return { check, status: 'ok', detail: '/dev/net/tun' };
  } catch {
    const remedy = 'Run: modprobe tun. In a container, pass the device in.';
    return { check, status: 'fail', detail: '/dev/net/tun is missing, so guests have no network', remedy };
  }
}

async function kernelFinding(kernelDirectory: string): Promise<DoctorFinding> {
  const check = 'guest kernel';
  try {
    return { check, status: 'ok', detail: (await readFile(join(kernelDirectory, 'version'), 'utf8')).trim() };
  } catch {
    const remedy = 'Run: make setup (or tools/fetch-kernel.sh).';
    return { check, status: 'fail', detail: `there is none in ${kernelDirectory}`, remedy };
  }
}

export interface Inspection {
  home: string;
  kernelDirectory: string;
  /** What the virtual machines run on, as it was found at the start; absent before it was looked for. */
  accelerator?: DoctorFinding;
}

export async function inspectHost({ home, kernelDirectory, accelerator }: Inspection): Promise<DoctorFinding[]> {
  const [facts, tun, kernel] = await Promise.all([hostFacts(home), tunFinding(), kernelFinding(kernelDirectory)]);
  const version = facts.cgroups.version;
  return [
    { check: 'host', status: 'ok', detail: `Linux ${facts.kernel}, Node ${process.versions.node}` },
    ...(accelerator ? [accelerator] : []),
    kernel,
    ...Object.entries(facts.programs).map(([name, said]) => programFinding(name, said)),
    factFinding('network namespaces', facts.networkNamespaces, 'fail', 'can be made'),
    factFinding('nftables', facts.nftables, 'fail', 'works'),
    tun,
    factFinding('cgroups', facts.cgroups, 'warn', version === undefined ? 'mounted' : `version ${version}`),
    factFinding('home', facts.home, 'fail', `${home} can be reached by the users of virtual machines`),
    diskFinding(facts.disk, home),
    memoryFinding(facts.memory, facts.cpus),
  ];
}

/** Throws for the first thing without which no sandbox can run; what it says is what the doctor says. */
export function refuseUnfit(findings: DoctorFinding[]): void {
  const failed = findings.find(({ status }) => status === 'fail');
  if (!failed) return;
  const code = failed.remedy === SETUP ? 'host_missing_tool' : 'host_unsupported';
  throw new AenvError(code, `${failed.check}: ${failed.detail}`, { remedy: failed.remedy });
}
