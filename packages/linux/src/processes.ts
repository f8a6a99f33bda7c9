/** Processes as /proc shows them. Pid and start time together name a process uniquely until the next boot. */
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';

export interface ProcessIdentity {
  pid: number;
  /** Field 22 of /proc/PID/stat: clock ticks since boot. */
  startTicks: number;
}

/** What the kernel counts processor time in, milliseconds: USER_HZ is 100 on every architecture that we know. */
const MS_PER_TICK = 10;

/** Start time of a living process; undefined when there is none or only its zombie is left. */
export function startTicksOf(pid: number): number | undefined {
  const fields = statFields(pid);
  const state = fields?.[0];
  if (!fields || state === 'Z' || state === 'X') return undefined;
  const ticks = Number(fields[19]);
  return Number.isSafeInteger(ticks) ? ticks : undefined;
}

/** Processor time that the process has used, milliseconds; 0 when it is gone. */
export function cpuMillisecondsOf(pid: number): number {
  const fields = statFields(pid);
  return fields ? (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK : 0;
}

/** The fields of /proc/PID/stat from the third (the state) on; undefined when there is no such process. */
function statFields(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The command name (field 2) is in parentheses and may hold spaces and parentheses itself.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
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
