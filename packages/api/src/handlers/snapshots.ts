/** Copies of sandboxes: snapshots, forks, rollbacks. Snapshots are deleted like templates. */
import type { Engine, ForkResult } from '@aenv/orchestrator';
import type { Schema } from '@aenv/protocol';
import type { Handlers } from '../binder.ts';
import { errorBody } from '../errors.ts';
import { sandboxId, templateName } from '../names.ts';
import { page } from '../paging.ts';
import * as views from '../views.ts';

/** Seconds, as in E2B's API. */
const FORK_TIMEOUT = 15;

function forkResult(result: ForkResult, domain: string | null): Schema<'ForkResult'> {
  return 'sandbox' in result ? { sandbox: views.sandbox(result.sandbox, domain) } : { error: errorBody(result.error) };
}

export function snapshotHandlers(engine: Engine, domain: string | null) {
  return {
    createSnapshot: async ({ params, body }) => {
      const options = { ...body, ...(body?.name === undefined ? {} : { name: templateName(body.name) }) };
      return { status: 201, body: views.snapshot(await engine.createSnapshot(sandboxId(params.sandboxID), options)) };
    },
    listSnapshots: ({ query }) => {
      const found = engine.listSnapshots({
        ...(query.sandboxID === undefined ? {} : { sandboxId: sandboxId(query.sandboxID) }),
        ...(query.name === undefined ? {} : { name: templateName(query.name) }),
        ...(query.state === undefined ? {} : { states: query.state }),
      });
      const { items, headers } = page(found, (view) => ({ at: view.createdAt, id: view.id }), query);
      return { status: 200, body: items.map(views.snapshot), headers };
    },
    forkSandbox: async ({ params, body }) => {
      const request = { count: body?.count ?? 1, timeoutSeconds: body?.timeout ?? FORK_TIMEOUT };
      const results = await engine.forkSandbox(sandboxId(params.sandboxID), request);
      return { status: 201, body: results.map((result) => forkResult(result, domain)) };
    },
    compareSnapshots: async ({ query }) => {
      const { files, memory } = await engine.compareSnapshots(templateName(query.from), templateName(query.to));
      const { changedMb: changedMB = 0, totalMb: totalMB = 0 } = memory ?? {};
      return { status: 200, body: { files, ...(memory ? { memory: { changedMB, totalMB } } : {}) } };
    },
    getLineage: async ({ params }) => {
      const nodes = await engine.lineage(templateName(params.id));
      return { status: 200, body: nodes.map(views.lineageNode) };
    },
    rollbackSandbox: async ({ params, body }) => {
      const view = await engine.rollbackSandbox(
        sandboxId(params.sandboxID),
        templateName(body.snapshotID),
        body.allowOlder ?? false,
      );
      return { status: 200, body: views.sandbox(view, domain) };
    },
  } satisfies Partial<Handlers>;
}
