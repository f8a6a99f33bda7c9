/** Templates and their builds: `waiting → building → ready | error`. */

import { createHash } from 'node:crypto';
import { AenvError, newBuildId, newSecret, newTemplateId, Semaphore, Singleflight } from '@aenv/std';
import { type Base, BaseDisks, type PullProgress } from './base-disks.ts';
import { capture } from './build-work.ts';
import type { BuildStart, BuildView, CreateCold, LogEntry, LogLevel, NewTemplate, TemplateView } from './engine.ts';
import { machineSize } from './machine-size.ts';
import type { Context } from './options.ts';
import type { Sandboxes } from './sandboxes.ts';
import type { SlotPool } from './slot-pool.ts';
import { checkTag, parseTemplateName } from './template-names.ts';
import { type BuildRow, DEFAULT_TAG, type GuestSettings, publicBuild, type TemplateTable } from './template-table.ts';
import type { WarmPool } from './warm-pool.ts';

/** Builds that boot at the same time; the others wait in order. */
const PARALLEL_BUILDS = 2;

export class Builds {
  readonly #context: Context;
  readonly #templates: TemplateTable;
  readonly #slots: SlotPool;
  readonly #sandboxes: Sandboxes;
  readonly #pool: WarmPool;
  readonly #bases: BaseDisks;
  readonly #room = new Semaphore(PARALLEL_BUILDS);
  readonly #running = new Map<string, Promise<void>>();
  readonly #cold = new Singleflight<BuildRow>();
  readonly #stop = new AbortController();
  #coldStarts = 0;

  constructor(context: Context, templates: TemplateTable, slots: SlotPool, sandboxes: Sandboxes, pool: WarmPool) {
    this.#pool = pool;
    this.#context = context;
    this.#templates = templates;
    this.#slots = slots;
    this.#sandboxes = sandboxes;
    this.#bases = new BaseDisks(context);
  }

  create(request: NewTemplate): TemplateView {
    const { name, tag } = parseTemplateName(request.name);
    const tags = new Set([...(tag === undefined ? [] : [tag]), ...request.tags.map(checkTag)]);
    const size = machineSize(request, this.#context.defaults);
    const now = this.#context.clock.now();
    const build: BuildRow = {
      id: newBuildId(),
      templateId: this.#templates.templateIdByName(name) ?? newTemplateId(),
      status: 'waiting',
      createdAt: now,
      updatedAt: now,
      cpuCount: size.cpuCount,
      memoryMb: size.memoryMb,
      tags: tags.size > 0 ? [...tags] : [DEFAULT_TAG],
    };
    this.#templates.addBuild(build, name);
    const view = this.#templates.view(build.templateId);
    return { ...view, build: publicBuild(build) };
  }

  get(templateId: string, buildId: string): BuildView {
    return publicBuild(this.#find(templateId, buildId));
  }

  logs(templateId: string, buildId: string): LogEntry[] {
    return this.#templates.logs(this.#find(templateId, buildId).id);
  }

  start(templateId: string, buildId: string, request: BuildStart): void {
    const build = this.#find(templateId, buildId);
    if (build.status !== 'waiting') {
      throw new AenvError('conflict', `build ${buildId} is ${build.status}, it can be started only once`, {
        remedy: 'Register a new build of the template.',
      });
    }
    if ((request.fromImage === undefined) === (request.fromTemplate === undefined)) {
      throw new AenvError('bad_request', 'a build starts from an image or from a template, and from one of them');
    }
    const { diskMb } = machineSize({ diskMb: request.diskSizeMb }, this.#context.defaults);
    // An unknown template is an error of the request, not of the build.
    const parent = request.fromTemplate === undefined ? undefined : this.#templates.resolve(request.fromTemplate).build;
    void this.#launch(
      build,
      request,
      (log) =>
        parent
          ? this.#bases.fromBuild(parent, diskMb)
          : this.#bases.fromImage(
              {
                reference: request.fromImage as string,
                diskMb,
                ...(request.credentials ? { credentials: request.credentials } : {}),
              },
              log,
            ),
      parent,
    );
  }

  /** The ready build that a cold start of this image uses; made when it is the first of its kind. */
  async cold(request: CreateCold): Promise<BuildRow> {
    this.#coldStarts += 1;
    try {
      return await this.#findCold(request);
    } finally {
      this.#coldStarts -= 1;
    }
  }

  /** Whether no build is in progress, the pull of its image included. */
  get isIdle(): boolean {
    return this.#running.size === 0 && this.#coldStarts === 0;
  }

  async #findCold(request: CreateCold): Promise<BuildRow> {
    const size = machineSize({ ...request, diskMb: request.diskSizeMb }, this.#context.defaults);
    const base = await this.#bases.fromImage(
      {
        reference: request.image,
        diskMb: size.diskMb,
        ...(request.credentials ? { credentials: request.credentials } : {}),
      },
      () => {},
    );
    const name = coldName(request.image, [base.digest, size.cpuCount, size.memoryMb, size.diskMb]);
    return this.#cold.run(name, () => this.#coldBuild(name, size, base));
  }

  async #coldBuild(name: string, size: { cpuCount: number; memoryMb: number }, base: Base): Promise<BuildRow> {
    const templateId = this.#templates.templateIdByName(name);
    const ready = templateId && this.#templates.buildsOf(templateId).find(({ status }) => status === 'ready');
    if (ready) return ready;
    const { build } = this.create({ name, tags: [], ...size });
    const row = this.#find(build.templateId, build.id);
    await this.#launch(row, {}, () => Promise.resolve(base), undefined);
    if (row.status === 'ready') return row;
    throw new AenvError('template_build_failed', row.reason?.message ?? 'the build failed');
  }

  /**
   * Deletes a template or snapshot, or with `:TAG` only the builds of that tag. Refuses while a sandbox, another template
   * or a build in progress needs it.
   */
  async delete(idOrName: string): Promise<void> {
    const [, tag] = idOrName.trim().toLowerCase().split(':', 2);
    const templateId = this.#templateId(idOrName);
    const all = this.#templates.buildsOf(templateId);
    const builds = tag === undefined ? all : all.filter(({ tags }) => tags.includes(tag));
    if (builds.length === 0) throw new AenvError('template_not_found', `template '${idOrName}' not found`);
    const ids = new Set(builds.map(({ id }) => id));
    if (builds.some(({ status }) => status === 'building')) {
      throw new AenvError('conflict', `template '${idOrName}' is being built`, {
        remedy: 'Wait until the build ends.',
      });
    }
    refuseInUse(idOrName, 'sandbox', this.#sandboxes.usersOf(ids));
    refuseInUse(idOrName, 'template', this.#templates.templatesBuiltOn(ids));
    await this.#pool.forget(ids);
    const { layers, layerStore, templateStore } = this.#context;
    const held = [...ids].flatMap((id) => layers.of(id));
    if (builds.length === all.length) this.#templates.deleteTemplate(templateId);
    else this.#templates.deleteBuilds(ids);
    for (const id of ids) await templateStore.remove(id);
    await layerStore.remove(layers.unheld(held));
  }

  view(idOrName: string): TemplateView {
    return this.#templates.view(this.#templateId(idOrName));
  }

  /** Gives up what is being built, and waits until nothing of it is left. */
  async close(): Promise<void> {
    this.#stop.abort(new AenvError('shutting_down', 'the server was stopped during the build'));
    await Promise.all(this.#running.values());
  }

  #templateId(idOrName: string): string {
    const name = idOrName.trim().toLowerCase().split(':', 1)[0] ?? '';
    return this.#templates.templateIdByName(name) ?? name;
  }

  #find(templateId: string, buildId: string): BuildRow {
    const build = this.#templates.build(buildId);
    if (build && build.templateId === templateId) return build;
    throw new AenvError('build_not_found', `template '${templateId}' has no build '${buildId}'`);
  }

  /** Resolves when the build has ended, well or not; the row says which. */
  #launch(
    build: BuildRow,
    request: BuildStart,
    base: (onProgress: (progress: PullProgress) => void) => Promise<Base>,
    parent: BuildRow | undefined,
  ): Promise<void> {
    this.#update(build, { status: 'building', ...(parent ? { baseBuildId: parent.id } : {}) });
    const work = this.#room
      .run(() => this.#build(build, request, base))
      .catch((err: unknown) => this.#context.logger.error({ err, buildId: build.id }, 'a build could not be recorded'))
      .finally(() => this.#running.delete(build.id));
    this.#running.set(build.id, work);
    return work;
  }

  async #build(
    build: BuildRow,
    request: BuildStart,
    findBase: (onProgress: (progress: PullProgress) => void) => Promise<Base>,
  ): Promise<void> {
    let step = 'base';
    const log = (level: LogLevel, message: string, fields?: Record<string, string>) =>
      this.#log(build, { level, message, step, ...(fields ? { fields } : {}) });
    try {
      await this.#context.ledger.run({ kind: 'build', buildId: build.id }, async (operation) => {
        this.#stop.signal.throwIfAborted();
        operation.enter('base');
        const base = await findBase(progressLog(log));
        log(
          'info',
          base.digest === undefined ? 'the disk of the base template is ready' : `image ${base.digest} is ready`,
        );
        step = 'finalize';
        operation.enter('finalize');
        const guest = { ...base.guest, initKey: newSecret() };
        await capture(this.#context, this.#slots, { build, guest, base, request, log, signal: this.#stop.signal });
        log('info', 'ready');
        this.#ready(build, guest, base);
      });
    } catch (reason) {
      const error = AenvError.from(reason, 'template_build_failed');
      this.#context.logger.warn({ err: reason, buildId: build.id }, 'a template build failed');
      log('error', error.message);
      const message = error.remedy === undefined ? error.message : `${error.message}. ${error.remedy}`;
      this.#update(build, { status: 'error', reason: { message, step }, finishedAt: this.#context.clock.now() });
    }
  }

  #ready(build: BuildRow, guest: GuestSettings, base: Base): void {
    build.guest = guest;
    build.diskSizeMb = base.disk.sizeMb;
    build.status = 'ready';
    build.finishedAt = build.updatedAt = this.#context.clock.now();
    this.#templates.putReady(build);
  }

  #update(build: BuildRow, change: Partial<BuildRow>): void {
    Object.assign(build, change, { updatedAt: this.#context.clock.now() });
    this.#templates.putBuild(build);
  }

  #log(build: BuildRow, entry: Omit<LogEntry, 'timestamp'>): void {
    this.#templates.log(build.id, { timestamp: this.#context.clock.now(), ...entry });
  }
}

/** Progress of a pull as log entries that a program can draw bars from. */
function progressLog(log: (level: LogLevel, message: string, fields: Record<string, string>) => void) {
  return ({ step, completedBytes, totalBytes }: PullProgress) =>
    log('debug', `${step}: ${completedBytes} of ${totalBytes} bytes`, {
      progress: step,
      completed: String(completedBytes),
      total: String(totalBytes),
    });
}

function refuseInUse(template: string, kind: string, users: string[]): void {
  if (users.length === 0) return;
  const shown = users.slice(0, 5).join(', ') + (users.length > 5 ? `, and ${users.length - 5} more` : '');
  throw new AenvError('template_in_use', `template '${template}' is needed by ${kind} ${shown}`, {
    remedy: `Delete the ${kind === 'sandbox' ? 'sandboxes' : 'templates'} first.`,
  });
}

/** A readable name for the template behind cold starts, one for each content and size. */
function coldName(image: string, key: readonly (string | number | undefined)[]): string {
  const base = image
    .toLowerCase()
    .replace(/@.*$/, '')
    .replace(/^.*\//, '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 40);
  const hash = createHash('sha256').update(JSON.stringify(key)).digest('hex').slice(0, 12);
  return `cold-${base || 'image'}-${hash}`;
}
