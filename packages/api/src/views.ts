/** From the engine's plain data to the shapes of the contract. */
import type {
  BuildView,
  LineageNode,
  LogEntry,
  OperationView,
  SandboxMetric,
  SandboxView,
  SnapshotView,
  TemplateView,
} from '@aenv/orchestrator';
import type { Schema } from '@aenv/protocol';
import { AenvError } from '@aenv/std';
import { errorBody } from './errors.ts';

/** Deprecated in E2B's API, and the same for every sandbox there. */
const CLIENT_ID = '6532622b';

const time = (milliseconds: number): string => new Date(milliseconds).toISOString();

export function sandbox(view: SandboxView, domain: string | null): Schema<'Sandbox'> {
  return {
    templateID: view.templateId,
    sandboxID: view.id,
    clientID: CLIENT_ID,
    envdVersion: view.envdVersion,
    domain,
    trafficAccessToken: null,
    ...(view.alias === undefined ? {} : { alias: view.alias }),
    ...(view.envdAccessToken === undefined ? {} : { envdAccessToken: view.envdAccessToken }),
  };
}

export function listedSandbox(view: SandboxView): Schema<'ListedSandbox'> {
  return {
    templateID: view.templateId,
    sandboxID: view.id,
    ...(view.alias === undefined ? {} : { alias: view.alias }),
    clientID: CLIENT_ID,
    startedAt: time(view.startedAt),
    endAt: time(view.endAt),
    cpuCount: view.cpuCount,
    memoryMB: view.memoryMb,
    diskSizeMB: view.diskSizeMb,
    metadata: view.metadata,
    state: view.state,
    envdVersion: view.envdVersion,
  };
}

export function sandboxDetail(view: SandboxView, domain: string | null): Schema<'SandboxDetail'> {
  return {
    ...listedSandbox(view),
    ...(view.envdAccessToken === undefined ? {} : { envdAccessToken: view.envdAccessToken }),
    allowInternetAccess: view.allowInternetAccess,
    domain,
    lifecycle: { autoResume: view.autoResume, onTimeout: view.onTimeout },
  };
}

export function snapshot(view: SnapshotView): Schema<'Snapshot'> {
  return {
    snapshotID: view.id,
    names: view.names,
    sandboxID: view.sandboxId,
    state: view.state,
    durable: view.durable,
    memory: view.memory,
    ...(view.reason === undefined ? {} : { reason: view.reason }),
    createdAt: time(view.createdAt),
    cpuCount: view.cpuCount,
    memoryMB: view.memoryMb,
    diskSizeMB: view.diskSizeMb,
  };
}

export function metric(sample: SandboxMetric): Schema<'SandboxMetric'> {
  return { ...sample, timestamp: time(sample.timestamp), timestampUnix: Math.floor(sample.timestamp / 1000) };
}

export function sandboxLogEntry(entry: LogEntry): Schema<'SandboxLogEntry'> {
  return {
    timestamp: time(entry.timestamp),
    message: entry.message,
    level: entry.level,
    fields: entry.fields ?? {},
  };
}

/** E2B's CLI parses the line: it wants JSON with `level`, `logger` and `message`. */
export function sandboxLogLine(entry: LogEntry): Schema<'SandboxLog'> {
  const { level, message, fields } = entry;
  return { timestamp: time(entry.timestamp), line: JSON.stringify({ logger: 'sandbox', ...fields, level, message }) };
}

export function buildLogEntry(entry: LogEntry): Schema<'BuildLogEntry'> {
  return {
    timestamp: time(entry.timestamp),
    message: entry.message,
    level: entry.level,
    ...(entry.step === undefined ? {} : { step: entry.step }),
  };
}

/** Names without their tags: what E2B calls aliases. */
const aliases = (view: TemplateView): string[] => [...new Set(view.names.map((name) => name.replace(/:.*/, '')))];

function templateBase(view: TemplateView) {
  return {
    templateID: view.id,
    public: false,
    aliases: aliases(view),
    names: view.names,
    createdAt: time(view.createdAt),
    updatedAt: time(view.updatedAt),
    lastSpawnedAt: view.lastSpawnedAt === undefined ? null : time(view.lastSpawnedAt),
    spawnCount: view.spawnCount,
  };
}

export function template(view: TemplateView): Schema<'Template'> {
  return {
    ...templateBase(view),
    buildID: view.build.id,
    cpuCount: view.build.cpuCount,
    memoryMB: view.build.memoryMb,
    diskSizeMB: view.build.diskSizeMb ?? 0,
    createdBy: null,
    buildCount: view.builds.length,
    envdVersion: view.build.envdVersion ?? '',
    buildStatus: view.build.status,
  };
}

function templateBuild(view: BuildView): Schema<'TemplateBuild'> {
  return {
    buildID: view.id,
    status: view.status,
    createdAt: time(view.createdAt),
    updatedAt: time(view.updatedAt),
    cpuCount: view.cpuCount,
    memoryMB: view.memoryMb,
    ...(view.finishedAt === undefined ? {} : { finishedAt: time(view.finishedAt) }),
    ...(view.diskSizeMb === undefined ? {} : { diskSizeMB: view.diskSizeMb }),
    ...(view.envdVersion === undefined ? {} : { envdVersion: view.envdVersion }),
  };
}

/** `builds`: those of one page. */
export function templateWithBuilds(view: TemplateView, builds: BuildView[]): Schema<'TemplateWithBuilds'> {
  return { ...templateBase(view), builds: builds.map(templateBuild) };
}

export function requestedTemplate(view: TemplateView): Schema<'RequestedTemplate'> {
  return {
    templateID: view.id,
    buildID: view.build.id,
    public: false,
    names: view.names,
    tags: view.tags,
    aliases: aliases(view),
  };
}

/** `entries`: the part of the log that was asked for. */
export function buildInfo(view: BuildView, entries: LogEntry[]): Schema<'BuildInfo'> {
  return {
    templateID: view.templateId,
    buildID: view.id,
    status: view.status,
    logs: entries.map((entry) => entry.message),
    logEntries: entries.map(buildLogEntry),
    ...(view.reason === undefined ? {} : { reason: { ...view.reason, logEntries: [] } }),
  };
}

export function operation(view: OperationView): Schema<'Operation'> {
  return {
    operationID: view.id,
    kind: view.kind,
    ...(view.sandboxId === undefined ? {} : { sandboxID: view.sandboxId }),
    ...(view.buildId === undefined ? {} : { buildID: view.buildId }),
    generation: view.generation,
    phase: view.phase,
    state: view.state,
    startedAt: time(view.startedAt),
    deadlineAt: time(view.deadlineAt),
    ...(view.endedAt === undefined ? {} : { endedAt: time(view.endedAt) }),
    ...(view.error === undefined ? {} : { error: errorBody(AenvError.fromJSON(view.error)) }),
  };
}

export function lineageNode({ parentId, uniqueMb, ...view }: LineageNode): Schema<'LineageNode'> {
  return {
    ...view,
    createdAt: time(view.createdAt),
    ...(parentId === undefined ? {} : { parentID: parentId }),
    uniqueMB: uniqueMb,
  };
}
