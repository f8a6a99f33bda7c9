export {
  AENVD_PORT,
  FIRST_SLOT_UID,
  GUEST_ADDRESS,
  GUEST_GATEWAY,
  GUEST_MAC,
  GUEST_PREFIX,
  JOB_UID,
  SLOT_COUNT,
  SLOT_NETWORK,
  type SlotAddresses,
  slotAddresses,
} from './addresses.ts';
export { type ConnectedLauncher, connectLauncher } from './client.ts';
export { findProgram, lookUpProgram } from './commands.ts';
export { ensureLauncher } from './ensure.ts';
export { type HostFacts, hostFacts } from './host-facts.ts';
export { type LauncherOptions, type RunningLauncher, startLauncher } from './launcher/server.ts';
export type {
  EgressPolicy,
  JobOptions,
  JobRequest,
  JobResult,
  Launcher,
  Leftover,
  MemoryDump,
  Slot,
  SpawnRequest,
  VmExit,
  VmLimits,
  VmProcess,
} from './launcher-api.ts';
export { compareMemory, type MemoryDifference, type SavedMemory } from './memory/compare.ts';
export { cpuMillisecondsOf } from './processes.ts';
export type { EnsureOptions } from './start-launcher.ts';
export { runTool, type ToolOptions, type ToolResult } from './tool.ts';
