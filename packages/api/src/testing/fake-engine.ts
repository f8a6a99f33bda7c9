/** An engine in memory, with failures on demand, for tests of the API. */
import type { Engine } from '@aenv/orchestrator';
import { AenvError, type Clock } from '@aenv/std';
import { FakeSandboxes } from './fake-sandboxes.ts';
import { FakeSnapshots } from './fake-snapshots.ts';
import { FakeTemplates } from './fake-templates.ts';

type Method = keyof Engine;

export interface FakeEngine extends Engine {
  sandboxes: FakeSandboxes;
  templates: FakeTemplates;
  /** Every further call of `method` throws `reason`; undefined ends that. */
  fail(method: Method, reason: unknown): void;
}

function withFailures(engine: Engine, failures: Map<Method, unknown>): Engine {
  return new Proxy(engine, {
    get(target, name: Method) {
      const method = target[name];
      if (typeof method !== 'function') return method;
      return (...args: unknown[]) => {
        if (failures.get(name) !== undefined) throw failures.get(name);
        return Reflect.apply(method, target, args);
      };
    },
  });
}

export function fakeEngine(clock: Clock): FakeEngine {
  const sandboxes = new FakeSandboxes(clock);
  const snapshots = new FakeSnapshots(sandboxes);
  const templates = new FakeTemplates(clock);
  const failures = new Map<Method, unknown>();
  const engine: Engine = {
    createSandbox: async (request) => {
      const { view } = templates.get(request.template);
      const { build } = view;
      if (build.status !== 'ready') throw new AenvError('conflict', `Template ${view.id} is not built.`);
      view.spawnCount++;
      view.lastSpawnedAt = clock.now();
      const { cpuCount, memoryMb, diskSizeMb = 0 } = build;
      return sandboxes.start(request, { id: view.id, alias: view.names[0], cpuCount, memoryMb, diskSizeMb });
    },
    createCold: async (request) => sandboxes.startCold(request),
    getSandbox: (id) => ({ ...sandboxes.get(id) }),
    listSandboxes: (filter) => sandboxes.list(filter),
    killSandbox: async (id) => sandboxes.kill(id),
    pauseSandbox: async (id, options) => sandboxes.noteMemory(options).pause(id),
    resumeSandbox: async (id, seconds, options) => sandboxes.noteMemory(options).resume(id, seconds),
    connectSandbox: async (id, seconds, options) => sandboxes.noteMemory(options).connect(id, seconds),
    setTimeout: async (id, seconds) => sandboxes.setTimeout(id, seconds),
    refresh: async (id, seconds) => sandboxes.prolong(id, seconds),
    sandboxMetrics: async (id, range) => sandboxes.metricsOf(id, range),
    sandboxLogs: async (id) => sandboxes.logsOf(id),
    route: (id) => sandboxes.route(id),
    createSnapshot: async (id, options) => snapshots.create(id, options),
    listSnapshots: (filter) => snapshots.list(filter),
    compareSnapshots: async (from, to) => ({
      files: [{ path: `/${from}/${to}`, kind: 'added' }],
      ...(from === to ? {} : { memory: { changedMb: 1.5, totalMb: 256 } }),
    }),
    forkSandbox: async (id, { count, timeoutSeconds }) => snapshots.fork(id, count, timeoutSeconds),
    rollbackSandbox: async (id, snapshot) => snapshots.rollback(id, snapshot),
    createTemplate: (request) => templates.create(request),
    startBuild: (templateId, buildId, request) => templates.startBuild(templateId, buildId, request),
    getBuild: (templateId, buildId) => ({ ...templates.build(templateId, buildId).view }),
    buildLogs: (templateId, buildId) => templates.build(templateId, buildId).logs,
    listTemplates: () => [...templates.byId.values()].map(({ view }) => view),
    getTemplate: (idOrName) => templates.get(idOrName).view,
    deleteTemplate: async (idOrName) => {
      const { id } = templates.get(idOrName).view;
      const user = [...sandboxes.views.values()].find((view) => view.templateId === id);
      if (user) throw new AenvError('template_in_use', `Sandbox ${user.id} needs the template.`);
      templates.delete(id);
    },
    stats: () => ({
      running: sandboxes.list({ states: ['running'] }).length,
      paused: sandboxes.list({ states: ['paused'] }).length,
      slotsReady: 4,
      pool: { ready: 2, hits: 1, misses: 1 },
      operations: { create: { succeeded: 1, failed: 0, seconds: 0.5 } },
    }),
    lineage: async (id) => [
      { id, kind: 'sandbox', name: id, state: 'running', createdAt: clock.now(), parentId: 'b1', uniqueMb: 3 },
    ],
    collectGarbage: async () => [{ kind: 'image_disk', name: 'd1.raw', bytes: 5, why: 'nobody needs it' }],
    node: () => ({
      running: 1,
      maxRunning: 2,
      waiting: 0,
      memoryMb: { total: 4096, free: 2048, promised: 512, limit: 8192 },
      freeDiskMb: 1000,
    }),
    audit: async (repair) => [{ kind: 'vm', name: 'i1-x', detail: 'runs for nobody', removed: repair }],
    listOperations: () => [
      { id: 'op1', kind: 'start', generation: 1, phase: 'starting', state: 'running', startedAt: 1, deadlineAt: 2 },
    ],
    doctor: async () => ({ findings: [{ check: 'qemu', status: 'ok', detail: 'QEMU 9.2' }] }),
  };
  const fail = (method: Method, reason: unknown) => void failures.set(method, reason);
  return Object.assign(withFailures(engine, failures), { sandboxes, templates, fail });
}
