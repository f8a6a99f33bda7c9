/** Templates: register, list, look at, resolve, delete. */
import type { Engine, TemplateView } from '@aenv/orchestrator';
import type { Schema } from '@aenv/protocol';
import type { Handlers } from '../binder.ts';
import { badRequest } from '../errors.ts';
import { templateName } from '../names.ts';
import { type PageQuery, page } from '../paging.ts';
import { refuse } from '../refusals.ts';
import * as views from '../views.ts';

function list(engine: Engine, query: PageQuery) {
  return page(engine.listTemplates(), (view: TemplateView) => ({ at: view.createdAt, id: view.id }), query);
}

function request(engine: Engine, body: Schema<'NewTemplate'>) {
  const name = body.name ?? body.alias;
  if (name === undefined) throw badRequest("body must have required property 'name'");
  refuse((body.minFreeDiskMb ?? 0) > 0, 'minFreeDiskMb', 'Set diskSizeMB when the build is started.');
  const view = engine.createTemplate({
    name: templateName(name),
    tags: (body.tags ?? []).map(templateName),
    cpuCount: body.cpuCount,
    memoryMb: body.memoryMB,
  });
  return { status: 202 as const, body: views.requestedTemplate(view) };
}

export function templateHandlers(engine: Engine) {
  return {
    requestTemplate: ({ body }) => request(engine, body),
    requestTemplateV2: ({ body }) => request(engine, body),
    listAllTemplates: () => {
      const { items } = list(engine, { limit: Number.POSITIVE_INFINITY });
      return { status: 200, body: items.map(views.template) };
    },
    listTemplates: ({ query }) => {
      const { items, headers } = list(engine, { limit: query.limit, nextToken: query.nextToken });
      return { status: 200, body: items.map(views.template), headers };
    },
    getTemplate: ({ params, query }) => {
      const view = engine.getTemplate(templateName(params.templateID));
      const { items, headers } = page(view.builds, (build) => ({ at: build.createdAt, id: build.id }), query);
      return { status: 200, body: views.templateWithBuilds(view, items), headers };
    },
    deleteTemplate: async ({ params }) => {
      await engine.deleteTemplate(templateName(params.templateID));
      return { status: 204, body: undefined };
    },
    resolveAlias: ({ params }) => ({
      status: 200,
      body: { templateID: engine.getTemplate(templateName(params.alias)).id, public: false },
    }),
  } satisfies Partial<Handlers>;
}
