/** How a process ended, in the numbers that shells use. */

export interface ProcessExit {
  /** What the process returned; 128 + the signal's number when a signal ended it. */
  exitCode: number;
  /** True when a signal ended it. */
  signalled: boolean;
  /** "exit status 1", "signal: killed". */
  status: string;
  /** For a command that could not be started: why. */
  error?: string;
}

/** Go's words for signals (what aenvd sends), with their numbers from signal(7). */
const SIGNAL_NUMBERS: Record<string, number> = {
  hangup: 1,
  interrupt: 2,
  quit: 3,
  'illegal instruction': 4,
  'trace/breakpoint trap': 5,
  aborted: 6,
  'bus error': 7,
  'floating point exception': 8,
  killed: 9,
  'user defined signal 1': 10,
  'segmentation fault': 11,
  'user defined signal 2': 12,
  'broken pipe': 13,
  'alarm clock': 14,
  terminated: 15,
};

const SIGNAL_STATUS = /^signal: (?<name>.+?)(?: \(core dumped\))?$/;

/** Reads an EndEvent of spec/envd/process/process.proto. A signal without a known name counts as SIGKILL. */
export function exitOf(end: { exitCode: number; exited: boolean; status: string; error?: string }): ProcessExit {
  const { exitCode, exited, status, error } = end;
  if (exited) return { exitCode, signalled: false, status, error: error === status ? undefined : error };
  const name = SIGNAL_STATUS.exec(status)?.groups?.name ?? '';
  const unnamed = /^signal (\d+)$/.exec(name)?.[1];
  const number = SIGNAL_NUMBERS[name] ?? Number(unnamed ?? SIGNAL_NUMBERS.killed);
  return { exitCode: 128 + number, signalled: true, status };
}
