/** Processes as /proc shows them. Pid and start time together name a process uniquely until the next boot. */
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';

export interface ProcessIdentity {
  pid: number;
  /** Field 22 of /proc/PID/stat: clock ticks since boot. */
  startTicks: number;
}

/** Start time of a living process; undefined when there is none or only its zombie is left. */
export function startTicksOf(pid: number): number | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return undefined;
  }
  // The command name (field 2) is in parentheses and may hold spaces and parentheses itself.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const state = fields[0];
  if (state === 'Z' || state === 'X') return undefined;
  const ticks = Number(fields[19]);
  return Number.isSafeInteger(ticks) ? ticks : undefined;
}

export function isAlive({ pid, startTicks }: ProcessIdentity): boolean {
  return startTicksOf(pid) === startTicks;
}

/** Signals a process (or, with a negative pid, its group); false when it is gone. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/** Pids of all processes whose network namespace is the one at `path` (such as /run/netns/NAME). */
export function processesInNamespace(path: string): number[] {
  let wanted: string;
  try {
    wanted = `net:[${statSync(path).ino}]`;
  } catch {
    return [];
  }
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && namespaceOf(name) === wanted)
    .map(Number);
}

function namespaceOf(pid: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`);
  } catch {
    return undefined;
  }
}
