/** Logs of sandboxes. */
import type { Engine } from '@aenv/orchestrator';
import type { Handlers } from '../binder.ts';
import { logWindow } from '../log-window.ts';
import { sandboxId } from '../names.ts';
import * as views from '../views.ts';

const DEFAULT_LIMIT = 1000;

export function logHandlers(engine: Engine) {
  return {
    getSandboxLogs: async ({ params, query }) => {
      const all = await engine.sandboxLogs(sandboxId(params.sandboxID));
      const shown = logWindow(all, { cursor: query.start, limit: query.limit ?? DEFAULT_LIMIT });
      const body = { logs: shown.map(views.sandboxLogLine), logEntries: shown.map(views.sandboxLogEntry) };
      return { status: 200, body };
    },
    getSandboxLogsV2: async ({ params, query }) => {
      const all = await engine.sandboxLogs(sandboxId(params.sandboxID));
      const entries = logWindow(all, { ...query, limit: query.limit ?? DEFAULT_LIMIT });
      return { status: 200, body: { logs: entries.map(views.sandboxLogEntry) } };
    },
  } satisfies Partial<Handlers>;
}
