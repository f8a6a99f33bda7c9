/** Puts together the chain of programs that takes a process's privileges away before it becomes the wanted program. */
import { statSync } from 'node:fs';
import { findProgram } from '../commands.ts';

/** Joins cgroups ($1 … up to --) and becomes the rest; the pid stays the same down the whole chain. */
const JOIN_SCRIPT = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 126; shift; done; shift; exec "$@"';

export interface Confinement {
  /** User and group id. */
  uid: number;
  /** Network namespace to enter; `new` for an empty one without any way out, `host` to stay. */
  network: { path: string } | 'new' | 'host';
  /** Directories to show elsewhere, in a mount namespace of the process's own. */
  binds?: { from: string; to: string }[];
  /** `cgroup.procs` files of the cgroups to join. */
  cgroupFiles?: string[];
  /** Limit of processes and threads of the user. */
  pids?: number;
  /** True when the process must not outlive the launcher. */
  dieWithLauncher?: boolean;
  /** Lets the process use /dev/kvm, where the device's group may. */
  kvm?: boolean;
}

/** Program and arguments that start `argv` (its first element an absolute path) confined. */
export function confinedArgv(argv: string[], confinement: Confinement): string[] {
  const { uid, network, binds = [], cgroupFiles = [], pids } = confinement;
  const limits = [findProgram('prlimit'), '--core=0', ...(pids === undefined ? [] : [`--nproc=${pids}`])];
  const setpriv = [
    findProgram('setpriv'),
    `--reuid=${uid}`,
    `--regid=${uid}`,
    ...groupArguments(confinement.kvm ?? false),
    '--no-new-privs',
    '--inh-caps=-all',
    '--ambient-caps=-all',
    '--bounding-set=-all',
    ...(confinement.dieWithLauncher ? ['--pdeathsig=KILL'] : []),
  ];
  return [
    ...['/bin/sh', '-c', JOIN_SCRIPT, 'aenv', ...cgroupFiles, '--'],
    ...networkArguments(network),
    ...mountArguments(binds),
    ...limits,
    '--',
    ...setpriv,
    '--',
    ...argv,
  ];
}

function networkArguments(network: Confinement['network']): string[] {
  if (network === 'host') return [];
  if (network === 'new') return [findProgram('unshare'), '--net', '--'];
  return [findProgram('nsenter'), `--net=${network.path}`, '--'];
}

function mountArguments(binds: { from: string; to: string }[]): string[] {
  if (binds.length === 0) return [];
  const script = 'while [ "$1" != -- ]; do mount --bind "$1" "$2" || exit 126; shift 2; done; shift; exec "$@"';
  const pairs = binds.flatMap(({ from, to }) => [from, to]);
  return [findProgram('unshare'), '--mount', '--', '/bin/sh', '-c', script, 'aenv', ...pairs, '--'];
}

function groupArguments(kvm: boolean): string[] {
  const group = kvm ? kvmGroup() : undefined;
  return group === undefined ? ['--clear-groups'] : [`--groups=${group}`];
}

/** The group that may use /dev/kvm; undefined when there is none, or when it is root's. */
function kvmGroup(): number | undefined {
  try {
    const { gid, mode } = statSync('/dev/kvm');
    return gid !== 0 && (mode & 0o060) === 0o060 ? gid : undefined;
  } catch {
    return undefined;
  }
}
