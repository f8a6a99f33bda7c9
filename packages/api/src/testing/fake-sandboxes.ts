/** The sandboxes of the fake engine: they change state as the real ones do, without a VM. */
import type {
  CreateCold,
  LogEntry,
  MemoryOption,
  SandboxFilter,
  SandboxMetric,
  SandboxRoute,
  SandboxSettings,
  SandboxView,
} from '@aenv/orchestrator';
import { AenvError, type Clock, newSandboxId, newSecret } from '@aenv/std';

const MAX_TIMEOUT_SECONDS = 86_400;
const SECONDS = 1000;

export interface FakeTemplate {
  id: string;
  alias?: string;
  cpuCount: number;
  memoryMb: number;
  diskSizeMb: number;
}

export class FakeSandboxes {
  readonly views = new Map<string, SandboxView>();
  /** What the last create was asked for. */
  lastSettings: SandboxSettings | undefined;
  /** What each pause and resume was asked to do with the memory. */
  readonly memory: boolean[] = [];
  metrics: SandboxMetric[] = [];
  logs: LogEntry[] = [];
  readonly clock: Clock;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  start(settings: SandboxSettings, template: FakeTemplate): SandboxView {
    const { timeoutSeconds } = settings;
    if (timeoutSeconds > MAX_TIMEOUT_SECONDS) {
      throw new AenvError('bad_request', `The longest timeout is ${MAX_TIMEOUT_SECONDS} seconds.`);
    }
    this.lastSettings = settings;
    const now = this.clock.now();
    const view: SandboxView = {
      id: newSandboxId(),
      templateId: template.id,
      ...(template.alias === undefined ? {} : { alias: template.alias }),
      state: 'running',
      startedAt: now,
      endAt: now + timeoutSeconds * SECONDS,
      cpuCount: template.cpuCount,
      memoryMb: template.memoryMb,
      diskSizeMb: template.diskSizeMb,
      metadata: settings.metadata,
      envdVersion: '0.6.13',
      ...(settings.secure ? { envdAccessToken: newSecret() } : {}),
      allowInternetAccess: settings.allowInternetAccess,
      autoResume: settings.autoResume,
      onTimeout: settings.onTimeout,
    };
    this.views.set(view.id, view);
    return { ...view };
  }

  startCold(request: CreateCold): SandboxView {
    const { cpuCount = 2, memoryMb = 1024, diskSizeMb = 2048 } = request;
    return this.start(request, { id: 'cold', cpuCount, memoryMb, diskSizeMb });
  }

  get(id: string): SandboxView {
    const view = this.views.get(id);
    if (view === undefined) throw new AenvError('sandbox_not_found', `Sandbox ${id} does not exist.`);
    return view;
  }

  list(filter: SandboxFilter): SandboxView[] {
    const wanted = Object.entries(filter.metadata ?? {});
    return [...this.views.values()].filter(
      (view) =>
        (filter.states?.includes(view.state) ?? true) &&
        wanted.every(([key, value]) => Object.hasOwn(view.metadata, key) && view.metadata[key] === value) &&
        view.startedAt >= (filter.startedAfter ?? 0) &&
        (filter.template === undefined || [view.templateId, view.alias].includes(filter.template)),
    );
  }

  kill(id: string): void {
    this.get(id);
    this.views.delete(id);
  }

  noteMemory({ memory = true }: MemoryOption = {}): this {
    this.memory.push(memory);
    return this;
  }

  pause(id: string): void {
    const view = this.get(id);
    if (view.state === 'paused') throw new AenvError('sandbox_paused', `Sandbox ${id} is paused already.`);
    view.state = 'paused';
    view.endAt = this.clock.now();
  }

  resume(id: string, timeoutSeconds: number): SandboxView {
    const view = this.get(id);
    if (view.state === 'running') throw new AenvError('sandbox_not_paused', `Sandbox ${id} is already running.`);
    view.state = 'running';
    view.startedAt = this.clock.now();
    view.endAt = view.startedAt + timeoutSeconds * SECONDS;
    return { ...view };
  }

  connect(id: string, timeoutSeconds: number): { sandbox: SandboxView; resumed: boolean } {
    if (this.get(id).state === 'paused') return { sandbox: this.resume(id, timeoutSeconds), resumed: true };
    this.prolong(id, timeoutSeconds);
    return { sandbox: { ...this.get(id) }, resumed: false };
  }

  private running(id: string): SandboxView {
    const view = this.get(id);
    if (view.state !== 'running') throw new AenvError('sandbox_not_found', `Sandbox ${id} is not running.`);
    return view;
  }

  setTimeout(id: string, timeoutSeconds: number): void {
    this.running(id).endAt = this.clock.now() + timeoutSeconds * SECONDS;
  }

  prolong(id: string, seconds: number): void {
    const view = this.running(id);
    view.endAt = Math.max(view.endAt, this.clock.now() + seconds * SECONDS);
  }

  metricsOf(id: string, { start = 0, end = Number.POSITIVE_INFINITY }): SandboxMetric[] {
    this.get(id);
    return this.metrics.filter(({ timestamp }) => timestamp >= start && timestamp <= end);
  }

  logsOf(id: string): LogEntry[] {
    this.get(id);
    return this.logs;
  }

  route(id: string): SandboxRoute {
    const view = this.views.get(id);
    if (view === undefined) return { kind: 'unknown' };
    if (view.state === 'paused') return { kind: 'paused', autoResume: view.autoResume };
    return { kind: 'running', address: '192.0.2.1', secure: view.envdAccessToken !== undefined };
  }
}
