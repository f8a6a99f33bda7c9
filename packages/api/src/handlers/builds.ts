/** Builds of templates: start them and follow them. */
import type { BuildStart, Engine } from '@aenv/orchestrator';
import type { Schema } from '@aenv/protocol';
import type { Handlers } from '../binder.ts';
import { badRequest } from '../errors.ts';
import { atLeast, logWindow } from '../log-window.ts';
import { templateName } from '../names.ts';
import { refuse } from '../refusals.ts';
import { registryCredentials } from '../registry.ts';
import * as views from '../views.ts';

const DEFAULT_LIMIT = 100;

function buildStart(body: Schema<'StartBuild'>): BuildStart {
  const first = body.steps?.[0];
  refuse(
    first !== undefined,
    `A build with steps (the first one is ${String(first?.type).slice(0, 32)})`,
    'Put what the steps do into the image.',
  );
  if ((body.fromImage === undefined) === (body.fromTemplate === undefined)) {
    throw badRequest('body must have exactly one of fromImage and fromTemplate.');
  }
  return {
    fromImage: body.fromImage,
    fromTemplate: body.fromTemplate === undefined ? undefined : templateName(body.fromTemplate),
    credentials: registryCredentials(body.fromImageRegistry),
    startCmd: body.startCmd || undefined,
    readyCmd: body.readyCmd || undefined,
    diskSizeMb: body.diskSizeMB,
  };
}

export function buildHandlers(engine: Engine) {
  /** The engine wants ids; the path may hold a name. */
  const idOf = (given: string): string => engine.getTemplate(templateName(given)).id;
  return {
    startBuild: ({ params, body }) => {
      engine.startBuild(idOf(params.templateID), params.buildID, buildStart(body));
      return { status: 202, body: undefined };
    },
    getBuildStatus: ({ params, query }) => {
      const templateId = idOf(params.templateID);
      const view = engine.getBuild(templateId, params.buildID);
      const offset = query.logsOffset ?? 0;
      const entries = atLeast(engine.buildLogs(templateId, params.buildID), query.level);
      const shown = entries.slice(offset, offset + (query.limit ?? DEFAULT_LIMIT));
      return { status: 200, body: views.buildInfo(view, shown) };
    },
    getBuildLogs: ({ params, query }) => {
      const entries = engine.buildLogs(idOf(params.templateID), params.buildID);
      const shown = logWindow(entries, {
        cursor: query.cursor,
        direction: query.direction,
        level: query.level,
        limit: query.limit ?? DEFAULT_LIMIT,
      });
      return { status: 200, body: { logs: shown.map(views.buildLogEntry) } };
    },
  } satisfies Partial<Handlers>;
}
