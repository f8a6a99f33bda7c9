/** The templates of the fake engine: a build is ready, or failed, as soon as it is started. */
import type { BuildStart, BuildView, LogEntry, NewTemplate, TemplateView } from '@aenv/orchestrator';
import { AenvError, type Clock, newBuildId, newTemplateId } from '@aenv/std';

interface Build {
  view: BuildView;
  logs: LogEntry[];
}

interface Template {
  view: TemplateView;
  builds: Map<string, Build>;
}

export class FakeTemplates {
  readonly byId = new Map<string, Template>();
  lastBuild: BuildStart | undefined;
  /** Entries that each build logs. */
  buildLog: string[] = ['pulling', 'capturing'];
  private readonly clock: Clock;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  create(request: NewTemplate): TemplateView {
    const [name = request.name, tag] = request.name.split(':');
    const now = this.clock.now();
    const template = this.find(name) ?? this.add(name, now);
    const build: BuildView = {
      id: newBuildId(),
      templateId: template.view.id,
      status: 'waiting',
      createdAt: now,
      updatedAt: now,
      cpuCount: request.cpuCount ?? 2,
      memoryMb: request.memoryMb ?? 1024,
    };
    template.builds.set(build.id, { view: build, logs: [] });
    template.view.build = build;
    template.view.builds = [...template.builds.values()].map(({ view }) => view);
    template.view.tags = [...request.tags, ...(tag === undefined ? [] : [tag])];
    return { ...template.view };
  }

  private add(name: string, now: number): Template {
    const view = { id: newTemplateId(), names: [name], tags: [], createdAt: now, updatedAt: now, spawnCount: 0 };
    const template = { view: { ...view, builds: [] } as unknown as TemplateView, builds: new Map<string, Build>() };
    this.byId.set(view.id, template);
    return template;
  }

  private find(idOrName: string): Template | undefined {
    const [name = idOrName] = idOrName.split(':');
    return this.byId.get(name) ?? [...this.byId.values()].find(({ view }) => view.names.includes(name));
  }

  get(idOrName: string): Template {
    const template = this.find(idOrName);
    if (template === undefined) throw new AenvError('template_not_found', `Template ${idOrName} does not exist.`);
    return template;
  }

  build(templateId: string, buildId: string): Build {
    const build = this.byId.get(templateId)?.builds.get(buildId);
    if (build === undefined) throw new AenvError('build_not_found', `Build ${buildId} does not exist.`);
    return build;
  }

  /** An image whose name holds `broken` fails. */
  startBuild(templateId: string, buildId: string, request: BuildStart): void {
    const { view, logs } = this.build(templateId, buildId);
    if (view.status !== 'waiting') throw new AenvError('conflict', `Build ${buildId} is ${view.status}.`);
    this.lastBuild = request;
    const now = this.clock.now();
    const failed = request.fromImage?.includes('broken');
    for (const message of this.buildLog) logs.push({ timestamp: now, level: 'info', message, step: 'base' });
    Object.assign(view, { status: failed ? 'error' : 'ready', finishedAt: now, updatedAt: now });
    if (failed) view.reason = { message: 'the image is broken', step: 'base' };
    else Object.assign(view, { diskSizeMb: request.diskSizeMb ?? 2048, envdVersion: '0.6.13' });
  }

  delete(idOrName: string): void {
    this.byId.delete(this.get(idOrName).view.id);
  }
}
