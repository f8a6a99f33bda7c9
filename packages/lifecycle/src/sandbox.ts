/**
 * The life of a sandbox as data: which operation does what in which state, and what follows from each outcome.
 * No I/O and no clock in here; the orchestrator asks, acts, and reports back.
 */

import type { ErrorCode } from '@aenv/std';

export const SANDBOX_PHASES = [
  'starting',
  'running',
  'pausing',
  'paused',
  'resuming',
  'capturing',
  'rolling_back',
  'killing',
] as const;
/** `gone` is no phase: a sandbox that is gone has no record. */
export type SandboxPhase = (typeof SANDBOX_PHASES)[number];

export const OPERATIONS = [
  'pause',
  'resume',
  'connect',
  'snapshot',
  'fork',
  'rollback',
  'kill',
  'set_timeout',
  'refresh',
] as const;
export type Operation = (typeof OPERATIONS)[number];

/**
 * begin: the operation starts and the sandbox enters `phase`.
 * join: the same operation is under way; its outcome is the answer.
 * wait: another operation is under way; ask again when it has ended.
 * apply: done at once, without a change of phase.
 * refuse: answered with this error.
 */
export type Answer =
  | { kind: 'begin'; phase: SandboxPhase }
  | { kind: 'join' }
  | { kind: 'wait' }
  | { kind: 'apply' }
  | { kind: 'refuse'; code: ErrorCode; message: string };

const WAIT: Answer = { kind: 'wait' };
const JOIN: Answer = { kind: 'join' };
const APPLY: Answer = { kind: 'apply' };
const GONE: Answer = refuse('sandbox_not_found', 'the sandbox is being killed');

function begin(phase: SandboxPhase): Answer {
  return { kind: 'begin', phase };
}

function refuse(code: ErrorCode, message: string): Answer {
  return { kind: 'refuse', code, message };
}

/** Answers to an operation that needs a running VM, and leaves the sandbox running. */
function whileRunning(phase: SandboxPhase): Record<SandboxPhase, Answer> {
  return {
    starting: WAIT,
    running: begin(phase),
    pausing: refuse('sandbox_busy', 'the sandbox is being paused'),
    paused: refuse('sandbox_paused', 'the sandbox is paused; resume it first'),
    resuming: WAIT,
    capturing: WAIT,
    rolling_back: WAIT,
    killing: GONE,
  };
}

/** The whole behaviour in one table; `docs/lifecycle.md` shows it to people. */
const ANSWERS: Record<Operation, Record<SandboxPhase, Answer>> = {
  pause: {
    starting: WAIT,
    running: begin('pausing'),
    pausing: JOIN,
    paused: refuse('sandbox_paused', 'the sandbox is paused already'),
    resuming: WAIT,
    capturing: WAIT,
    rolling_back: WAIT,
    killing: GONE,
  },
  resume: {
    starting: WAIT,
    running: refuse('sandbox_not_paused', 'the sandbox is already running'),
    pausing: WAIT,
    paused: begin('resuming'),
    resuming: JOIN,
    capturing: WAIT,
    rolling_back: WAIT,
    killing: GONE,
  },
  connect: {
    starting: WAIT,
    running: APPLY,
    pausing: WAIT,
    paused: begin('resuming'),
    resuming: JOIN,
    capturing: WAIT,
    rolling_back: WAIT,
    killing: refuse('conflict', 'the sandbox is being killed'),
  },
  snapshot: whileRunning('capturing'),
  fork: whileRunning('capturing'),
  rollback: whileRunning('rolling_back'),
  kill: {
    starting: WAIT,
    running: begin('killing'),
    pausing: WAIT,
    paused: begin('killing'),
    resuming: WAIT,
    capturing: WAIT,
    rolling_back: WAIT,
    killing: JOIN,
  },
  set_timeout: {
    starting: APPLY,
    running: APPLY,
    pausing: refuse('sandbox_busy', 'the sandbox is being paused'),
    paused: refuse('sandbox_not_found', 'the sandbox is paused and has no timeout'),
    resuming: WAIT,
    capturing: APPLY,
    rolling_back: APPLY,
    killing: refuse('conflict', 'the sandbox is being killed'),
  },
  refresh: {
    starting: APPLY,
    running: APPLY,
    pausing: refuse('sandbox_busy', 'the sandbox is being paused'),
    paused: refuse('sandbox_not_found', 'the sandbox is paused and has no timeout'),
    resuming: WAIT,
    capturing: APPLY,
    rolling_back: APPLY,
    killing: refuse('conflict', 'the sandbox is being killed'),
  },
};

/** What `operation` gets while the sandbox is in `phase`. */
export function answer(phase: SandboxPhase, operation: Operation): Answer {
  return ANSWERS[operation][phase];
}

/** The phase after the operation that entered `phase` has ended; `gone` = the record is removed. */
export function outcome(phase: SandboxPhase, succeeded: boolean): SandboxPhase | 'gone' {
  switch (phase) {
    case 'starting':
      return succeeded ? 'running' : 'gone';
    case 'pausing':
      return succeeded ? 'paused' : 'running';
    case 'resuming':
      return succeeded ? 'running' : 'paused';
    case 'capturing':
    case 'rolling_back':
      // The old VM goes on until the new state is complete.
      return 'running';
    case 'killing':
      // What could not be removed must not be forgotten: the end is tried again.
      return succeeded ? 'gone' : 'killing';
    default:
      throw new Error(`no operation ends in phase ${phase}`);
  }
}

/** True for the two phases in which a sandbox stays; the others end by themselves. */
export function isSettled(phase: SandboxPhase): phase is 'running' | 'paused' {
  return phase === 'running' || phase === 'paused';
}

export interface Deadline {
  phase: SandboxPhase;
  /** Milliseconds since the epoch. */
  endAt: number;
  onTimeout: 'kill' | 'pause';
}

/** A pause begins this long before the timeout, so that it has begun when that strikes; milliseconds. */
export const PAUSE_LEAD_MS = 250;

/** What the timeout asks for at `now`; undefined while it is not due or an operation is in progress. */
export function due({ phase, endAt, onTimeout }: Deadline, now: number): 'kill' | 'pause' | undefined {
  const dueAt = onTimeout === 'pause' ? endAt - PAUSE_LEAD_MS : endAt;
  if (phase !== 'running' || now < dueAt) return undefined;
  return onTimeout;
}

/** Why a sandbox is gone; kept so that its id can be answered with the cause. */
export type EndCause =
  | 'killed'
  | 'timeout'
  | 'start_failed'
  | 'guest_shutdown'
  | 'guest_panic'
  | 'oom'
  | 'vmm_crash'
  | 'host_restart';
