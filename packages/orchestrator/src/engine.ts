/**
 * What the orchestrator offers to the API, the proxy and the server: sandboxes and templates as plain data, operations as
 * methods. Times are milliseconds since the epoch, durations are seconds where they come from a user, sizes are MiB.
 * Every method rejects with an AenvError; the codes worth naming are given at each.
 */

import type { AenvError, ErrorJson } from '@aenv/std';

export type SandboxState = 'running' | 'paused';
export type OnTimeout = 'kill' | 'pause';

export interface SandboxView {
  id: string;
  templateId: string;
  /** First name of the template, when it has one. */
  alias?: string;
  state: SandboxState;
  /** Start of the present run. */
  startedAt: number;
  /** When the timeout strikes; for a paused sandbox the time of the pause. */
  endAt: number;
  cpuCount: number;
  memoryMb: number;
  diskSizeMb: number;
  metadata: Record<string, string>;
  envdVersion: string;
  /** Present for secure sandboxes. */
  envdAccessToken?: string;
  allowInternetAccess: boolean;
  autoResume: boolean;
  onTimeout: OnTimeout;
}

export interface SandboxSettings {
  /** ≥ 1; more than the configured maximum is refused (`bad_request`) with the maximum in the message. */
  timeoutSeconds: number;
  onTimeout: OnTimeout;
  /** Whether a pause on timeout keeps the memory; without it the sandbox boots when it is resumed. */
  pauseMemory: boolean;
  autoResume: boolean;
  secure: boolean;
  allowInternetAccess: boolean;
  metadata: Record<string, string>;
  envVars: Record<string, string>;
}

export interface CreateSandbox extends SandboxSettings {
  /** Template id, name, or `name:tag`. */
  template: string;
  /** Of a snapshot, an older one will do when the newest under this name is not ready. */
  allowOlder?: boolean;
}

/** Names a request, so that it can be sent again without being carried out again. */
export interface OnceKey {
  /** Chosen by the client. */
  key: string;
  /** Of all that the request asks for. */
  digest: string;
}

export interface RegistryCredentials {
  username: string;
  password: string;
}

export interface CreateCold extends SandboxSettings {
  image: string;
  cpuCount?: number;
  memoryMb?: number;
  diskSizeMb?: number;
  credentials?: RegistryCredentials;
}

export interface SandboxFilter {
  states?: SandboxState[];
  /** All pairs must match. */
  metadata?: Record<string, string>;
  /** Milliseconds since the epoch, inclusive. */
  startedAfter?: number;
  /** Template id or name; one that does not exist matches nothing. */
  template?: string;
}

export interface SandboxMetric {
  timestamp: number;
  cpuCount: number;
  /** Percent of all cores, 0–100. */
  cpuUsedPct: number;
  /** The rest in bytes. */
  memUsed: number;
  memTotal: number;
  memCache: number;
  diskUsed: number;
  diskTotal: number;
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export interface LogEntry {
  timestamp: number;
  level: LogLevel;
  message: string;
  /** Build step, for build logs. */
  step?: string;
  fields?: Record<string, string>;
}

export type BuildStatus = 'waiting' | 'building' | 'ready' | 'error';

export interface BuildView {
  id: string;
  templateId: string;
  status: BuildStatus;
  createdAt: number;
  updatedAt: number;
  finishedAt?: number;
  cpuCount: number;
  memoryMb: number;
  /** Known once the disk exists. */
  diskSizeMb?: number;
  envdVersion?: string;
  /** Why it failed; `step` is `base`, a step's number or `finalize`, as E2B has it. */
  reason?: { message: string; step: string };
}

export interface TemplateView {
  id: string;
  /** The build that a start uses, else the newest one. */
  build: BuildView;
  builds: BuildView[];
  names: string[];
  tags: string[];
  createdAt: number;
  updatedAt: number;
  lastSpawnedAt?: number;
  spawnCount: number;
}

export interface NewTemplate {
  /** `name` or `name:tag`; an existing name gets a new build of the same template. */
  name: string;
  tags: string[];
  cpuCount?: number;
  memoryMb?: number;
}

export interface BuildStart {
  fromImage?: string;
  fromTemplate?: string;
  credentials?: RegistryCredentials;
  /** Runs in the guest until the capture and stays running in every sandbox. */
  startCmd?: string;
  /** Polled until it exits with 0 before the capture. */
  readyCmd?: string;
  diskSizeMb?: number;
}

export interface MemoryOption {
  /** False: only the disk counts, and the sandbox boots from it when it goes on. True by default. */
  memory?: boolean;
}

export interface NewSnapshot extends MemoryOption {
  /** `name` or `name:tag`. */
  name?: string;
}

export type SnapshotState = 'creating' | 'ready' | 'failed';

export interface SnapshotView {
  /** What a start names: `TEMPLATE-ID:TAG` or `NAME:TAG`. */
  id: string;
  names: string[];
  templateId: string;
  /** The sandbox that it was taken of. */
  sandboxId: string;
  state: SnapshotState;
  createdAt: number;
  cpuCount: number;
  memoryMb: number;
  diskSizeMb: number;
  /** Whether it would survive the loss of power. */
  durable: boolean;
  /** False: what starts from it boots from its disk. */
  memory: boolean;
  /** Why it failed. */
  reason?: string;
}

export interface SnapshotDiff {
  /** Sorted by path. Times of files do not count. */
  files: { path: string; kind: 'added' | 'changed' | 'removed' }[];
  /** Absent when one of the two has no memory. Fractions of a MiB count. */
  memory?: { changedMb: number; totalMb: number };
}

export interface SnapshotFilter {
  sandboxId?: string;
  /** Id or name; with a tag only that one. */
  name?: string;
  /** Default: those that are ready. */
  states?: SnapshotState[];
}

export type OperationKind = 'start' | 'pause' | 'resume' | 'snapshot' | 'fork' | 'rollback' | 'kill' | 'build';
/** `interrupted`: the server ended meanwhile; its next start has finished or undone what was begun. */
export type OperationState = 'running' | 'succeeded' | 'failed' | 'interrupted';

/** A long operation, in progress or ended. */
export interface OperationView {
  id: string;
  kind: OperationKind;
  sandboxId?: string;
  buildId?: string;
  /** Counts the operations of the sandbox or build. */
  generation: number;
  /** The last phase that it reached. */
  phase: string;
  state: OperationState;
  startedAt: number;
  /** It has ended by then, one way or the other. */
  deadlineAt: number;
  endedAt?: number;
  error?: ErrorJson;
}

export interface OperationFilter {
  sandboxId?: string;
  states?: OperationState[];
}

/** The outcome of one child of a fork. */
export type ForkResult = { sandbox: SandboxView } | { error: AenvError };

/** Where the proxy finds a sandbox. */
export type SandboxRoute =
  | { kind: 'running'; address: string; secure: boolean }
  | { kind: 'paused'; autoResume: boolean; envdAccessToken?: string }
  | { kind: 'unknown' };

export interface EngineStats {
  running: number;
  paused: number;
  slotsReady: number;
  /** VMs that wait for a sandbox; starts that found one, and starts that did not. */
  pool: { ready: number; hits: number; misses: number };
  /** Per operation: how many ended well, how many did not, and the seconds they took together. */
  operations: Record<string, { succeeded: number; failed: number; seconds: number }>;
}

/** What the machine has to give, and what it has promised. */
export interface NodeView {
  running: number;
  maxRunning: number;
  /** Starts that wait for room. */
  waiting: number;
  /** `limit`: as much as the overcommit allows to promise. */
  memoryMb: { total: number; free: number; promised: number; limit: number };
  freeDiskMb: number;
}

/** Something that can be made again and nothing needs. */
export interface Garbage {
  kind: 'image_disk';
  name: string;
  bytes: number;
  why: string;
}

/** A template, snapshot or sandbox in the graph of who came from whom. */
export interface LineageNode {
  /** Of a sandbox, or of a build. */
  id: string;
  kind: 'template' | 'snapshot' | 'sandbox';
  name: string;
  state: string;
  /** For a sandbox that has ended, its end. */
  createdAt: number;
  parentId?: string;
  /** On the disk, used by nobody else. */
  uniqueMb: number;
}

export interface Engine {
  /**
   * `template_not_found`, `conflict` (not built), `capacity_exhausted`, `sandbox_start_failed`. With `once`, a request that
   * made a sandbox before gives that sandbox; `conflict` when the key came with another request.
   */
  createSandbox(request: CreateSandbox, once?: OnceKey): Promise<SandboxView>;
  /** Starts straight from an image; the first start of an image takes as long as a build. `image_*`, `registry_*`. */
  createCold(request: CreateCold, once?: OnceKey): Promise<SandboxView>;
  /** `sandbox_not_found`. */
  getSandbox(id: string): SandboxView;
  /** Unordered; paging and order belong to the API. */
  listSandboxes(filter: SandboxFilter): SandboxView[];
  /** Returns when nothing of it is left. `sandbox_not_found`. */
  killSandbox(id: string): Promise<void>;
  /** `sandbox_not_found`, `sandbox_paused` when it is paused already, `snapshot_failed` (then it still runs). */
  pauseSandbox(id: string, options?: MemoryOption): Promise<void>;
  /** `sandbox_not_found`, `sandbox_not_paused`, `restore_failed` (then it is still paused). */
  resumeSandbox(id: string, timeoutSeconds: number, options?: MemoryOption): Promise<SandboxView>;
  /** Resumes when paused; when running only ever prolongs the timeout. */
  connectSandbox(
    id: string,
    timeoutSeconds: number,
    options?: MemoryOption,
  ): Promise<{ sandbox: SandboxView; resumed: boolean }>;
  /** Counts from now and may shorten. `sandbox_not_found` also for a paused sandbox, as E2B answers. */
  setTimeout(id: string, timeoutSeconds: number): Promise<void>;
  /** Only ever prolongs. */
  refresh(id: string, durationSeconds: number): Promise<void>;
  /** Samples within [start, end], milliseconds since the epoch, oldest first. */
  sandboxMetrics(id: string, range: { start?: number; end?: number }): Promise<SandboxMetric[]>;
  /** Oldest first: what happened to the sandbox, and its console. */
  sandboxLogs(id: string): Promise<LogEntry[]>;
  /** For the proxy; cheap, called for each connection. */
  route(id: string): SandboxRoute;

  /**
   * Copies a running sandbox, which goes on at once. `name` is `NAME` or `NAME:TAG`. `sandbox_not_found`,
   * `sandbox_paused`, `conflict` (the name is a template's), `snapshot_failed` (then the sandbox runs on).
   */
  createSnapshot(id: string, options?: NewSnapshot): Promise<SnapshotView>;
  /** Newest first. */
  listSnapshots(filter: SnapshotFilter): SnapshotView[];
  /**
   * What is other in `to` than in `from`, both snapshots or templates that are ready; `template_not_found`, `conflict`,
   * `disk_unreadable`.
   */
  compareSnapshots(from: string, to: string): Promise<SnapshotDiff>;
  /** `count` new sandboxes (1 to 100) with the state of a running one. Errors as of `createSnapshot`. */
  forkSandbox(id: string, request: { count: number; timeoutSeconds: number }): Promise<ForkResult[]>;
  /**
   * Puts a snapshot's state in the place of a running sandbox's, under the same id. `template_not_found`, `conflict` (no
   * snapshot, or not ready), `restore_failed` (then the sandbox runs on as it was).
   */
  rollbackSandbox(id: string, snapshot: string, allowOlder: boolean): Promise<SandboxView>;

  /** Registers a template with a build in state `waiting`. */
  createTemplate(request: NewTemplate): TemplateView;
  /** Returns at once; the build goes on in the background. `build_not_found`, `conflict` when it is not waiting. */
  startBuild(templateId: string, buildId: string, request: BuildStart): void;
  getBuild(templateId: string, buildId: string): BuildView;
  /** All entries, oldest first. */
  buildLogs(templateId: string, buildId: string): LogEntry[];
  listTemplates(): TemplateView[];
  /** By id or name. `template_not_found`. */
  getTemplate(idOrName: string): TemplateView;
  /** `template_not_found`; `template_in_use` naming the sandboxes that need it. */
  deleteTemplate(idOrName: string): Promise<void>;

  /** Long operations, newest first; those that ended a while ago are forgotten. */
  listOperations(filter: OperationFilter): OperationView[];
  /** The family of a sandbox or snapshot, parents before their children. `sandbox_not_found`. */
  lineage(idOrName: string): Promise<LineageNode[]>;
  /** Frees what can be made again and nothing needs; `dryRun` only tells. `conflict` while a build is in progress. */
  collectGarbage(dryRun: boolean): Promise<Garbage[]>;
  node(): NodeView;
  stats(): EngineStats;
  /** What is on the machine that no record owns, and what records miss; with `repair`, the former is removed. */
  audit(repair: boolean): Promise<AuditFinding[]>;
  /** The machine's report for `aenv doctor`. */
  doctor(): Promise<DoctorReport>;
}

export interface AuditFinding {
  /** The last three: a record needs something that is gone. */
  kind:
    | 'vm'
    | 'slot'
    | 'sandbox_files'
    | 'template_files'
    | 'run_directory'
    | 'layer'
    | 'namespace'
    | 'cgroup'
    | 'missing_vm'
    | 'missing_state'
    | 'missing_layer';
  name: string;
  detail: string;
  removed?: boolean;
}

export interface DoctorFinding {
  /** Such as `qemu`, `accelerator`, `nftables`, `disk`. */
  check: string;
  status: 'ok' | 'warn' | 'fail';
  /** What was found, with versions and figures. */
  detail: string;
  /** What to do, for warn and fail. */
  remedy?: string;
}

export interface DoctorReport {
  findings: DoctorFinding[];
}
