export {
  type Deferred,
  deferred,
  KeyedMutex,
  type PollOptions,
  pollUntil,
  Semaphore,
  Singleflight,
  sleep,
  withDeadline,
} from './async.ts';
export { type Clock, ManualClock, systemClock } from './clock.ts';
export {
  AenvError,
  type AenvErrorOptions,
  ERROR_CODES,
  type ErrorCode,
  type ErrorJson,
  isSystemError,
} from './errors.ts';
export { type AtomicWriteOptions, ifThere, syncPath, writeFileAtomic } from './files.ts';
export {
  newApiKey,
  newBuildId,
  newLayerId,
  newOperationId,
  newSandboxId,
  newSecret,
  newTemplateId,
  randomBase36,
  SANDBOX_ID_PATTERN,
} from './ids.ts';
export { type Logger, silentLogger } from './log.ts';
