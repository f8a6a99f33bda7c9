/** Client of the public API. */
export {
  type AenvClient,
  type AuditReport,
  createAenvClient,
  type DoctorReport,
  type Garbage,
  type Node,
  type Operation,
  type SandboxAddress,
  sandboxGuest,
} from './client.ts';
export type {
  AenvSandboxes,
  Sandbox,
  SandboxDetail,
  SandboxLogEntry,
  SandboxQuery,
  SandboxState,
  SandboxSummary,
} from './sandboxes.ts';
export type {
  AenvSnapshots,
  ForkResult,
  LineageNode,
  Snapshot,
  SnapshotDiff,
  SnapshotQuery,
  SnapshotState,
} from './snapshots.ts';
export type { AenvTemplates, BuildIds, BuildInfo, BuildLogEntry, Template, TemplateDetail } from './templates.ts';
export type { AenvClientOptions } from './transport.ts';
