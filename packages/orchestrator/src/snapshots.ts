/** Snapshots and forks: copies of running sandboxes, which go on meanwhile. A snapshot is a template with a source. */
import { AenvError, newBuildId, newTemplateId, Semaphore } from '@aenv/std';
import type { ForkResult, NewSnapshot, SandboxView, SnapshotDiff, SnapshotFilter, SnapshotView } from './engine.ts';
import type { Operation } from './ledger.ts';
import type { Context } from './options.ts';
import type { Captured, Sandboxes } from './sandboxes.ts';
import { compareBuilds } from './snapshot-diff.ts';
import { parseTemplateName } from './template-names.ts';
import { type BuildRow, DEFAULT_TAG, type TemplateTable } from './template-table.ts';

/** Children of one fork that start at the same time. */
const PARALLEL_STARTS = 4;
const MAX_FORKS = 100;

export class Snapshots {
  readonly #context: Context;
  readonly #templates: TemplateTable;
  readonly #sandboxes: Sandboxes;
  readonly #running = new Set<Promise<unknown>>();

  constructor(context: Context, templates: TemplateTable, sandboxes: Sandboxes) {
    this.#context = context;
    this.#templates = templates;
    this.#sandboxes = sandboxes;
  }

  create(sandboxId: string, options: NewSnapshot): Promise<SnapshotView> {
    return this.#track(this.#create(sandboxId, options));
  }

  fork(sandboxId: string, count: number, timeoutSeconds: number): Promise<ForkResult[]> {
    if (!Number.isInteger(count) || count < 1 || count > MAX_FORKS) {
      throw new AenvError('bad_request', `a fork makes 1 to ${MAX_FORKS} sandboxes (asked for ${count})`);
    }
    const fork = (operation: Operation) => this.#fork(sandboxId, operation, count, timeoutSeconds);
    return this.#track(this.#context.ledger.run({ kind: 'fork', sandboxId }, fork));
  }

  list({ sandboxId, name, states = ['ready'] }: SnapshotFilter): SnapshotView[] {
    const [bare = '', tag] = (name ?? '').split(':', 2);
    const templateId = this.#templates.templateIdByName(bare) ?? bare;
    return this.#templates
      .builds()
      .filter((build) => build.sourceSandboxId !== undefined)
      .filter((build) => sandboxId === undefined || build.sourceSandboxId === sandboxId)
      .filter((build) => name === undefined || build.templateId === templateId)
      .filter((build) => tag === undefined || build.tags.includes(tag))
      .map((build) => this.#view(build))
      .filter(({ state }) => states.includes(state));
  }

  /** The ready snapshot that `id` names; `template_not_found`, or `conflict` when it is not ready. */
  find(id: string, allowOlder: boolean): BuildRow {
    const { build } = this.#templates.resolveNewest(id, allowOlder);
    if (build.sourceSandboxId === undefined) {
      throw new AenvError('conflict', `'${id}' is a template, not a snapshot of a sandbox`);
    }
    return ready(id, build);
  }

  compare(from: string, to: string): Promise<SnapshotDiff> {
    const [before, after] = [from, to].map((id) => ready(id, this.#templates.resolve(id).build)) as [
      BuildRow,
      BuildRow,
    ];
    return compareBuilds(this.#context, before, after);
  }

  /** Waits for what is in progress. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#running);
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#running.add(work);
    work.catch(() => {}).finally(() => this.#running.delete(work));
    return work;
  }

  async #create(sandboxId: string, { name, memory = true }: NewSnapshot): Promise<SnapshotView> {
    const { templateStore, clock, ledger } = this.#context;
    const build = this.#register(this.#sandboxes.view(sandboxId), name, !memory);
    try {
      await ledger.run({ kind: 'snapshot', sandboxId, buildId: build.id }, async (operation) => {
        const into = await templateStore.stageSnapshot(build.id);
        const captured = await this.#sandboxes.capture(sandboxId, 'snapshot', operation, {
          holder: build.id,
          ...(memory ? { into } : {}),
        });
        operation.enter('publishing');
        await this.#publish(build, captured);
      });
    } catch (reason) {
      const error = AenvError.from(reason, 'snapshot_failed');
      Object.assign(build, { status: 'error', reason: { message: error.message, step: 'finalize' } });
      build.finishedAt = build.updatedAt = clock.now();
      this.#templates.putBuild(build);
      await this.#discard(build.id);
      throw error;
    }
    return this.#view(build);
  }

  /** The record is there before anything is done: nobody takes an older snapshot for this one. */
  #register(source: SandboxView, name: string | undefined, diskOnly: boolean): BuildRow {
    const wanted = name === undefined ? undefined : parseTemplateName(name);
    const templateId = wanted && this.#templates.templateIdByName(wanted.name);
    if (
      templateId &&
      this.#templates.buildsOf(templateId).some(({ sourceSandboxId }) => sourceSandboxId === undefined)
    ) {
      throw new AenvError('conflict', `'${wanted.name}' is the name of a template`, {
        remedy: 'Take another name, or delete the template.',
      });
    }
    const base = this.#sandboxes.buildOf(source.id);
    const now = this.#context.clock.now();
    const build: BuildRow = {
      id: newBuildId(),
      templateId: templateId || newTemplateId(),
      status: 'building',
      createdAt: now,
      updatedAt: now,
      cpuCount: base.cpuCount,
      memoryMb: base.memoryMb,
      ...(base.diskSizeMb === undefined ? {} : { diskSizeMb: base.diskSizeMb }),
      // Its memory is pages over that of the build that was booted, and so is its disk in the end.
      baseBuildId: base.sourceSandboxId === undefined ? base.id : base.baseBuildId,
      sourceSandboxId: source.id,
      diskOnly,
      tags: [wanted?.tag ?? DEFAULT_TAG],
    };
    this.#templates.addBuild(build, wanted?.name);
    return build;
  }

  async #publish(build: BuildRow, { build: base, layers, settings, memoryBase }: Captured): Promise<void> {
    const { templateStore, layerStore, clock } = this.#context;
    const { machine, disk } = await templateStore.manifest(base.id);
    const below = await templateStore.filesBelowLayers(base.id);
    const chain = [...below, ...layers.map((layer) => layerStore.path(layer))];
    const content = {
      createdAt: clock.now(),
      machine,
      disk: { path: chain.at(-1) as string, sizeMb: disk.sizeMb, parents: chain.slice(0, -1) },
    };
    await templateStore.publishSnapshot(build.id, content, memoryBase);
    if (!base.guest) throw new AenvError('internal', `build ${base.id} has no guest settings`);
    build.guest = { ...base.guest, env: { ...base.guest.env, ...settings.envVars } };
    build.status = 'ready';
    build.finishedAt = build.updatedAt = clock.now();
    this.#templates.putReady(build);
  }

  async #fork(sandboxId: string, operation: Operation, count: number, timeoutSeconds: number): Promise<ForkResult[]> {
    const { templateStore } = this.#context;
    const holder = newBuildId();
    try {
      const saved = await templateStore.stageSnapshot(holder);
      const captured = await this.#sandboxes.capture(sandboxId, 'fork', operation, { holder, into: saved });
      const { build, layers, settings, memoryBase = '' } = captured;
      operation.enter('starting');
      const { disk } = await templateStore.manifest(build.id);
      const emptyLayer = await templateStore.stageEmptyLayer(
        holder,
        this.#context.layerStore.path(layers.at(-1) as string),
        disk.sizeMb,
      );
      const state = { memory: { base: memoryBase, diff: saved.memoryDiff }, state: saved.state };
      const origin = { build, layers, emptyLayer, state };
      const room = new Semaphore(PARALLEL_STARTS);
      const start = () => this.#sandboxes.createFrom(origin, { ...settings, timeoutSeconds }, { parentId: sandboxId });
      const outcomes = await Promise.allSettled(Array.from({ length: count }, () => room.run(start)));
      return outcomes.map((outcome) =>
        outcome.status === 'fulfilled' ? { sandbox: outcome.value } : { error: AenvError.from(outcome.reason) },
      );
    } finally {
      await this.#discard(holder);
    }
  }

  /** Removes what was staged, and the layers that nobody else has come to need. */
  async #discard(holder: string): Promise<void> {
    const { templateStore, layerStore, layers, logger } = this.#context;
    try {
      await templateStore.discardStaging(holder);
      await layerStore.remove(layers.onlyOf(holder));
      layers.release(holder);
    } catch (err) {
      logger.warn({ err, holder }, 'what an unfinished copy left is removed at the next start');
    }
  }

  #view(build: BuildRow): SnapshotView {
    const [tag = DEFAULT_TAG] = build.tags;
    const name = this.#templates.firstName(build.templateId);
    return {
      id: `${name ?? build.templateId}:${tag}`,
      names: name === undefined ? [] : [`${name}:${tag}`],
      templateId: build.templateId,
      sandboxId: build.sourceSandboxId ?? '',
      state: build.status === 'ready' ? 'ready' : build.status === 'error' ? 'failed' : 'creating',
      // A snapshot is ready when its files are on the disk, not before.
      durable: build.status === 'ready',
      createdAt: build.createdAt,
      cpuCount: build.cpuCount,
      memoryMb: build.memoryMb,
      diskSizeMb: build.diskSizeMb ?? 0,
      memory: !build.diskOnly,
      ...(build.reason ? { reason: build.reason.message } : {}),
    };
  }
}

function ready(id: string, build: BuildRow): BuildRow {
  if (build.status === 'ready') return build;
  throw new AenvError('conflict', `'${id}' is ${build.status}: ${build.reason?.message ?? 'not ready yet'}`);
}
