/** Puts the parts together and offers them as the `Engine`. */
import { LayerStore, prepareHome, SandboxStore, TemplateStore } from '@aenv/snapshot';
import { AenvError } from '@aenv/std';
import { audit } from './audit.ts';
import { Builds } from './builds.ts';
import { consoleTail } from './console.ts';
import { openDatabase } from './database.ts';
import type {
  CreateCold,
  CreateSandbox,
  DoctorReport,
  Engine,
  EngineStats,
  ForkResult,
  LogEntry,
  MemoryOption,
  NewSnapshot,
  OnceKey,
  SandboxFilter,
  SandboxMetric,
  SandboxView,
  SnapshotDiff,
  SnapshotFilter,
  SnapshotView,
} from './engine.ts';
import { collect } from './gc.ts';
import { IdleWatch } from './idle-watch.ts';
import { LayerTable } from './layer-table.ts';
import { Ledger } from './ledger.ts';
import { lineage } from './lineage.ts';
import { MetricsHistory } from './metrics-history.ts';
import { OperationStats } from './operation-stats.ts';
import type { Context, OrchestratorOptions } from './options.ts';
import { type RecoveryReport, recoverState } from './recovery.ts';
import { Sandboxes } from './sandboxes.ts';
import { SlotPool } from './slot-pool.ts';
import { Snapshots } from './snapshots.ts';
import { TemplateTable } from './template-table.ts';
import { WarmPool } from './warm-pool.ts';

/** How often timeouts are looked at, milliseconds. */
const SWEEP_MS = 200;
const METRICS_MS = 60_000;

/** Opens the state below `options.home`, recovers what an earlier server has left, and starts to work. */
export async function createOrchestrator(options: OrchestratorOptions): Promise<Orchestrator> {
  await prepareHome(options.home);
  const database = openDatabase(options.home.database);
  const context: Context = {
    ...options,
    database,
    ledger: new Ledger({ database, clock: options.clock, logger: options.logger }),
    layers: new LayerTable(database),
    layerStore: new LayerStore(options.home, options.launcher),
    templateStore: new TemplateStore(options.home, options.launcher),
    sandboxStore: new SandboxStore(options.home),
  };
  const slots = new SlotPool({ launcher: options.launcher, size: options.slotPoolSize, logger: options.logger });
  const templates = new TemplateTable(context.database);
  const pool = new WarmPool(context, slots, {
    size: options.pool.size,
    maxIdleMs: options.pool.maxIdleSeconds * 1000,
    freeMemoryMb: options.freeMemoryMb,
    hasRoom: () => sandboxes.activeCount + pool.readyCount < options.limits.maxRunning,
  });
  const sandboxes = new Sandboxes(context, templates, slots, pool);
  const builds = new Builds(context, templates, slots, sandboxes, pool);
  const snapshots = new Snapshots(context, templates, sandboxes);
  try {
    const recovered = await recoverState(context, sandboxes, templates);
    slots.refill();
    return new Orchestrator({ context, slots, templates, sandboxes, builds, snapshots, pool, recovered });
  } catch (error) {
    context.database.close();
    throw error;
  }
}

interface Parts {
  context: Context;
  slots: SlotPool;
  templates: TemplateTable;
  sandboxes: Sandboxes;
  builds: Builds;
  snapshots: Snapshots;
  pool: WarmPool;
  recovered: RecoveryReport;
}

export class Orchestrator implements Engine {
  readonly #parts: Parts;
  readonly #metrics: MetricsHistory;
  readonly #stats = new OperationStats();
  readonly #timers: NodeJS.Timeout[];
  #closing = false;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#metrics = new MetricsHistory(parts.context);
    const idle = new IdleWatch(parts.context, parts.sandboxes);
    this.#timers = [
      setInterval(() => {
        parts.sandboxes.sweep();
        parts.pool.sweep();
        parts.sandboxes.admission.sweep();
        idle.sweep();
      }, SWEEP_MS),
      setInterval(() => void this.#sampleAll(), METRICS_MS),
    ];
    for (const timer of this.#timers) timer.unref();
  }

  /** What the start found. */
  get recovered(): RecoveryReport {
    return this.#parts.recovered;
  }

  // ---- sandboxes

  createSandbox(request: CreateSandbox, once?: OnceKey): Promise<SandboxView> {
    return this.#operation('create', async () => {
      const { build } = this.#parts.templates.resolveNewest(request.template, request.allowOlder ?? false);
      if (build.status !== 'ready') {
        throw new AenvError('conflict', `template '${request.template}' is not ready: its build is ${build.status}`, {
          remedy: 'Wait for the build, or look at its logs.',
        });
      }
      const { template: _, allowOlder: __, ...settings } = request;
      return this.#parts.sandboxes.create(build, settings, once);
    });
  }

  createCold(request: CreateCold, once?: OnceKey): Promise<SandboxView> {
    return this.#operation('create_cold', async () => {
      const build = await this.#parts.builds.cold(request);
      const { image, cpuCount, memoryMb, diskSizeMb, credentials, ...settings } = request;
      return this.#parts.sandboxes.create(build, settings, once);
    });
  }

  getSandbox(id: string): SandboxView {
    return this.#parts.sandboxes.view(id);
  }

  listSandboxes(filter: SandboxFilter): SandboxView[] {
    return this.#parts.sandboxes.list(filter);
  }

  killSandbox(id: string): Promise<void> {
    return this.#operation('kill', () => this.#parts.sandboxes.kill(id));
  }

  pauseSandbox(id: string, { memory = true }: MemoryOption = {}): Promise<void> {
    return this.#operation('pause', () => this.#parts.sandboxes.pause(id, memory));
  }

  resumeSandbox(id: string, timeoutSeconds: number, { memory = true }: MemoryOption = {}): Promise<SandboxView> {
    return this.#operation('resume', async () => {
      await this.#parts.sandboxes.resume(id, 'resume', { timeoutSeconds, memory });
      return this.getSandbox(id);
    });
  }

  connectSandbox(
    id: string,
    timeoutSeconds: number,
    { memory = true }: MemoryOption = {},
  ): Promise<{ sandbox: SandboxView; resumed: boolean }> {
    return this.#operation('connect', async () => {
      const resumed = await this.#parts.sandboxes.resume(id, 'connect', { timeoutSeconds, memory });
      return { sandbox: this.getSandbox(id), resumed };
    });
  }

  createSnapshot(id: string, options: NewSnapshot = {}): Promise<SnapshotView> {
    return this.#operation('snapshot', () => this.#parts.snapshots.create(id, options));
  }

  listSnapshots(filter: SnapshotFilter): SnapshotView[] {
    return this.#parts.snapshots.list(filter);
  }

  forkSandbox(id: string, { count, timeoutSeconds }: { count: number; timeoutSeconds: number }): Promise<ForkResult[]> {
    return this.#operation('fork', () => this.#parts.snapshots.fork(id, count, timeoutSeconds));
  }

  compareSnapshots(from: string, to: string): Promise<SnapshotDiff> {
    return this.#parts.snapshots.compare(from, to);
  }

  rollbackSandbox(id: string, snapshot: string, allowOlder: boolean): Promise<SandboxView> {
    return this.#operation('rollback', async () => {
      await this.#parts.sandboxes.rollback(id, this.#parts.snapshots.find(snapshot, allowOlder));
      return this.getSandbox(id);
    });
  }

  setTimeout(id: string, timeoutSeconds: number): Promise<void> {
    return this.#parts.sandboxes.setTimeout(id, timeoutSeconds);
  }

  refresh(id: string, durationSeconds: number): Promise<void> {
    return this.#parts.sandboxes.refresh(id, durationSeconds);
  }

  sandboxMetrics(id: string, range: { start?: number; end?: number }): Promise<SandboxMetric[]> {
    this.getSandbox(id);
    const guest = this.#parts.sandboxes.running().find((running) => running.id === id);
    return this.#metrics.of(id, guest, range);
  }

  async sandboxLogs(id: string): Promise<LogEntry[]> {
    const { sandboxes, context } = this.#parts;
    const directory = sandboxes.runDirectory(id);
    const console = directory === undefined ? [] : await consoleTail(directory, context.clock.now());
    return [...sandboxes.table.logs(id), ...console];
  }

  route(id: string) {
    return this.#parts.sandboxes.route(id);
  }

  // ---- templates

  createTemplate: Engine['createTemplate'] = (request) => this.#parts.builds.create(request);
  startBuild: Engine['startBuild'] = (templateId, buildId, request) => {
    this.#refuseWhenClosing();
    this.#parts.builds.start(templateId, buildId, request);
  };
  getBuild: Engine['getBuild'] = (templateId, buildId) => this.#parts.builds.get(templateId, buildId);
  buildLogs: Engine['buildLogs'] = (templateId, buildId) => this.#parts.builds.logs(templateId, buildId);
  listTemplates: Engine['listTemplates'] = () => this.#parts.templates.views();
  getTemplate: Engine['getTemplate'] = (idOrName) => this.#parts.builds.view(idOrName);
  deleteTemplate: Engine['deleteTemplate'] = (idOrName) => this.#parts.builds.delete(idOrName);

  // ---- the whole

  lineage: Engine['lineage'] = async (idOrName) => {
    const { sandboxes, templates } = this.#parts;
    const isSandbox = sandboxes.ids().includes(idOrName) || sandboxes.table.ended(idOrName) !== undefined;
    return lineage(this.#parts, isSandbox ? idOrName : templates.resolve(idOrName).build.id);
  };
  collectGarbage: Engine['collectGarbage'] = (dryRun) => collect(this.#parts, dryRun);
  node: Engine['node'] = () => this.#parts.sandboxes.admission.node();
  listOperations: Engine['listOperations'] = (filter) => this.#parts.context.ledger.list(filter);

  stats(): EngineStats {
    const { sandboxes, slots, pool } = this.#parts;
    return {
      running: sandboxes.activeCount,
      paused: sandboxes.pausedCount,
      slotsReady: slots.readyCount,
      pool: { ready: pool.readyCount, hits: pool.hits, misses: pool.misses },
      operations: this.#stats.snapshot(),
    };
  }

  audit: Engine['audit'] = (repair) => audit(this.#parts, repair);

  async doctor(): Promise<DoctorReport> {
    return { findings: await this.#parts.context.inspectHost() };
  }

  /** Ends what is in progress; VMs go on running and are adopted at the next start. */
  async close(): Promise<void> {
    this.#closing = true;
    for (const timer of this.#timers) clearInterval(timer);
    await this.#parts.builds.close();
    await this.#parts.pool.close();
    await this.#parts.snapshots.settled();
    await this.#parts.sandboxes.settled();
    await this.#parts.slots.close();
    this.#parts.context.database.close();
  }

  async #operation<T>(name: string, work: () => Promise<T>): Promise<T> {
    this.#refuseWhenClosing();
    return await this.#stats.measure(name, work);
  }

  #refuseWhenClosing(): void {
    if (this.#closing) throw new AenvError('shutting_down', 'the server is stopping', { remedy: 'Try again soon.' });
  }

  #sampleAll(): Promise<void> {
    const { sandboxes } = this.#parts;
    const known = new Set(sandboxes.list({}).map(({ id }) => id));
    return this.#metrics.sampleAll(sandboxes.running(), known);
  }
}
