/** What the server does at start with a sandbox that an earlier process has left in some phase. Pure. */
import type { SandboxPhase } from './sandbox.ts';

export interface Leftover {
  phase: SandboxPhase;
  /** Whether the VMM process of the record still runs. */
  alive: boolean;
  /** Whether a complete saved state (device state, memory, manifest) is on disk. */
  saved: boolean;
}

/**
 * adopt: the VM goes on, its processors are let run, and the sandbox is running.
 * keep_paused: a VMM that still holds it is ended; the saved state counts.
 * remove: nothing to keep; `lost` tells whether a user loses a sandbox that ran.
 */
export type Recovery = { kind: 'adopt' } | { kind: 'keep_paused' } | { kind: 'remove'; lost: boolean };

export function recover({ phase, alive, saved }: Leftover): Recovery {
  switch (phase) {
    case 'starting':
      // Nobody has been told its id yet.
      return { kind: 'remove', lost: false };
    case 'killing':
      return { kind: 'remove', lost: false };
    // A capture leaves the VM as it was; a rollback has recorded the VM that counts.
    case 'running':
    case 'capturing':
    case 'rolling_back':
      return alive ? { kind: 'adopt' } : { kind: 'remove', lost: true };
    case 'pausing':
      // The VM is the truth as long as it lives: the pause was not reported as done.
      if (alive) return { kind: 'adopt' };
      return saved ? { kind: 'keep_paused' } : { kind: 'remove', lost: true };
    case 'paused':
      return saved ? { kind: 'keep_paused' } : { kind: 'remove', lost: true };
    case 'resuming':
      // The record turns to `running` before the processors run, so this VM has not run yet.
      return saved ? { kind: 'keep_paused' } : { kind: 'remove', lost: true };
  }
}
