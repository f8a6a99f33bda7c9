export { type Leftover, type Recovery, recover } from './recovery.ts';
export {
  type Answer,
  answer,
  type Deadline,
  due,
  type EndCause,
  isSettled,
  OPERATIONS,
  type Operation,
  outcome,
  PAUSE_LEAD_MS,
  SANDBOX_PHASES,
  type SandboxPhase,
} from './sandbox.ts';
