export type * from './engine.ts';
export { aenvdGuests } from './guest-aenvd.ts';
export type { GuestCommand, GuestIdentity, GuestMetrics, GuestPort } from './guest-port.ts';
export type { MachineParts, OrchestratorOptions } from './options.ts';
export { createOrchestrator, Orchestrator } from './orchestrator.ts';
export type { RecoveryReport } from './recovery.ts';
