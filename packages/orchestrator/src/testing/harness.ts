/** Orchestrators over a fake host and a real directory, for tests. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as tick } from 'node:timers/promises';
import { homeLayout } from '@aenv/snapshot';
import { ManualClock, silentLogger } from '@aenv/std';
import type { SandboxSettings } from '../engine.ts';
import { createOrchestrator, type Orchestrator } from '../orchestrator.ts';
import { Connection, FakeHost } from './fake-host.ts';

export const SETTINGS: SandboxSettings = {
  timeoutSeconds: 300,
  onTimeout: 'kill',
  pauseMemory: true,
  autoResume: false,
  secure: false,
  allowInternetAccess: true,
  metadata: {},
  envVars: {},
};

export class Harness {
  readonly host = new FakeHost();
  readonly clock = new ManualClock(1_000_000);
  readonly root: string;
  freeMemoryMb = 16_384;
  launchTimeoutSeconds = 30;
  readyTimeoutSeconds = 1;
  pauseIdleSeconds = 0;
  /** When traffic to a sandbox ended; undefined: there is some. */
  readonly quiet = new Map<string, number | undefined>();
  readonly cpuMs = new Map<number, number>();
  freeDiskMb = 100_000;
  totalMemoryMb = 16_384;
  maxRunning = 100;
  queueSeconds = 0;
  /** Sandboxes whose connections were to be cut, in order. */
  readonly cut: string[] = [];

  private constructor(root: string) {
    this.root = root;
  }

  static async create(): Promise<Harness> {
    return new Harness(await mkdtemp(join(tmpdir(), 'aenv-orchestrator-')));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.root, { recursive: true, force: true });
  }

  /** A server start. */
  start(connection = new Connection(this.host), slotPoolSize = 0, poolSize = 0): Promise<Orchestrator> {
    return createOrchestrator({
      home: homeLayout(this.root),
      launcher: connection.launcher,
      driver: connection.driver,
      guests: connection.guests,
      machine: { kernel: '/kernel', initramfs: '/initramfs', kernelArguments: [] },
      defaults: { cpuCount: 1, memoryMb: 256, diskMb: 512 },
      limits: {
        maxTimeoutSeconds: 86_400,
        maxRunning: this.maxRunning,
        overcommitPercent: 1000,
        queueSeconds: this.queueSeconds,
        launchTimeoutSeconds: this.launchTimeoutSeconds,
        readyTimeoutSeconds: this.readyTimeoutSeconds,
      },
      slotPoolSize,
      pool: { size: poolSize, maxIdleSeconds: 60 },
      freeMemoryMb: () => this.freeMemoryMb,
      totalMemoryMb: this.totalMemoryMb,
      freeDiskMb: () => this.freeDiskMb,
      idle: {
        pauseAfterSeconds: this.pauseIdleSeconds,
        quietSince: (id) => (this.quiet.has(id) ? this.quiet.get(id) : 0),
        cpuMs: (pid) => this.cpuMs.get(pid) ?? 0,
      },
      onRouteChange: (id) => this.cut.push(id),
      inspectHost: () => Promise.resolve([]),
      clock: this.clock,
      logger: silentLogger,
    });
  }

  /** Nothing runs, and no file of a sandbox is there. */
  async assertNothingLeft(): Promise<void> {
    assert.deepEqual([...this.host.vms.keys()], [], 'VMs are left');
    assert.deepEqual(await readdir(join(this.root, 'sandboxes')), [], 'directories of sandboxes are left');
    assert.deepEqual(await readdir(join(this.root, 'vm')), [], 'run directories are left');
    assert.deepEqual(await this.layersWithoutHolder(), [], 'layers are left');
  }

  /** The layers that the disk of a sandbox consists of, bottom first. */
  layersOf(sandboxId: string): string[] {
    return this.#layers().get(sandboxId) ?? [];
  }

  #layers(): Map<string, string[]> {
    const database = new DatabaseSync(join(this.root, 'state.db'), { readOnly: true });
    const rows = database.prepare('SELECT id, layers_json FROM sandboxes').all();
    database.close();
    return new Map(rows.map((row) => [row.id as string, JSON.parse(row.layers_json as string) as string[]]));
  }

  /** Layers below the top of a sandbox's disk that another VM could not read. */
  unsealedLayers(): string[] {
    const below = [...this.#layers().values()].flatMap((layers) => layers.slice(0, -1));
    return below.filter((layer) => !this.host.sealed.has(join(this.root, 'layers', `${layer}.qcow2`)));
  }

  /** Disk layers that neither a sandbox nor a build needs. */
  async layersWithoutHolder(): Promise<string[]> {
    const database = new DatabaseSync(join(this.root, 'state.db'), { readOnly: true });
    const held = new Set(
      database
        .prepare('SELECT layer FROM layers')
        .all()
        .map((row) => `${row.layer}.qcow2`),
    );
    database.close();
    return (await readdir(join(this.root, 'layers'))).filter((name) => !held.has(name));
  }
}

/** A ready template named `base`. */
export async function buildBase(orchestrator: Orchestrator, name = 'base', fromImage = 'debian'): Promise<string> {
  const { id, build } = orchestrator.createTemplate({ name, tags: [] });
  orchestrator.startBuild(id, build.id, { fromImage });
  for (;;) {
    const { status, reason } = orchestrator.getBuild(id, build.id);
    if (status === 'ready') return id;
    assert.notEqual(status, 'error', reason?.message);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Waits, turn by turn, for what happens in the background. */
export async function until(condition: () => boolean): Promise<void> {
  for (let turn = 0; !condition(); turn += 1) {
    assert.ok(turn < 5_000, `never: ${condition}`);
    await tick();
  }
}
