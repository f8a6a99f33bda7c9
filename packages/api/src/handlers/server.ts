/** The server itself: health, figures, the machine's report, and the one team. */
import type { Engine } from '@aenv/orchestrator';
import type { Handlers } from '../binder.ts';
import { sandboxId } from '../names.ts';
import * as views from '../views.ts';

/** There are no teams; E2B's CLI wants one with a UUID to log in. */
const TEAM_ID = '00000000-0000-4000-8000-000000000000';

export function serverHandlers(engine: Engine, version: string) {
  return {
    health: () => ({ status: 204, body: undefined }),
    doctor: async () => ({ status: 200, body: await engine.doctor() }),
    stats: () => ({ status: 200, body: { version, ...engine.stats() } }),
    collectGarbage: async ({ body }) => ({ status: 200, body: await engine.collectGarbage(body?.dryRun ?? false) }),
    node: () => {
      const { memoryMb: memoryMB, freeDiskMb: freeDiskMB, ...rest } = engine.node();
      return { status: 200, body: { ...rest, memoryMB, freeDiskMB } };
    },
    audit: async () => ({ status: 200, body: { findings: await engine.audit(false) } }),
    repair: async () => ({ status: 200, body: { findings: await engine.audit(true) } }),
    listOperations: ({ query }) => {
      const found = engine.listOperations({
        ...(query.sandboxID === undefined ? {} : { sandboxId: sandboxId(query.sandboxID) }),
        ...(query.state === undefined ? {} : { states: query.state }),
      });
      return { status: 200, body: found.map(views.operation) };
    },
    listTeams: ({ key }) => ({
      status: 200,
      body: [{ teamID: TEAM_ID, name: 'default', apiKey: key, isDefault: true }],
    }),
  } satisfies Partial<Handlers>;
}
