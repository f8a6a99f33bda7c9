/** Copies of sandboxes through the API. */
import type { Schema } from '@aenv/protocol';
import type { Sandbox } from './sandboxes.ts';
import { type Connection, LISTS, unwrap, unwrapWithHeaders } from './transport.ts';

export type Snapshot = Schema<'Snapshot'>;
export type SnapshotState = Schema<'SnapshotState'>;
export type LineageNode = Schema<'LineageNode'>;
export type SnapshotDiff = Schema<'SnapshotDiff'>;
export type ForkResult = Schema<'ForkResult'>;

export interface SnapshotQuery {
  /** Only those of this sandbox. */
  sandboxID?: string;
  /** Id or name; with a tag only that one. */
  name?: string;
  /** Default: those that are ready. */
  states?: SnapshotState[];
}

export interface AenvSnapshots {
  /** Of a running sandbox, which goes on. `sandbox_paused`, `conflict` (the name is a template's), `snapshot_failed`. */
  create(sandboxID: string, options?: Schema<'NewSnapshot'>): Promise<Snapshot>;
  /** All pages, newest first. */
  list(query?: SnapshotQuery): Promise<Snapshot[]>;
  /** `template_not_found`, `template_in_use`. */
  delete(idOrName: string): Promise<void>;
  /** What is other in `to` than in `from`, without starting either. `disk_unreadable`. */
  compare(from: string, to: string): Promise<SnapshotDiff>;
  /** `count` new sandboxes with the state of a running one, in order; each started or failed by itself. */
  fork(sandboxID: string, count: number, timeoutSeconds: number): Promise<ForkResult[]>;
  /** The family of a sandbox or snapshot, parents before their children. */
  lineage(id: string): Promise<LineageNode[]>;
  /** Puts the snapshot's state in the place of a running sandbox's. `restore_failed`: it runs on as it was. */
  rollback(sandboxID: string, snapshotID: string, options?: { allowOlder?: boolean }): Promise<Sandbox>;
}

export function aenvSnapshots({ api }: Connection): AenvSnapshots {
  const at = (sandboxID: string) => ({ path: { sandboxID } });
  return {
    create: (id, body = {}) => unwrap(api.POST('/sandboxes/{sandboxID}/snapshots', { params: at(id), body })),
    async list({ sandboxID, name, states } = {}) {
      const found: Snapshot[] = [];
      let nextToken: string | undefined;
      do {
        const query = { sandboxID, name, state: states, nextToken };
        const page = await unwrapWithHeaders(api.GET('/snapshots', { params: { query }, querySerializer: LISTS }));
        found.push(...page.data);
        nextToken = page.headers.get('x-next-token') ?? undefined;
      } while (nextToken);
      return found;
    },
    delete: async (templateID) =>
      void (await unwrap(api.DELETE('/templates/{templateID}', { params: { path: { templateID } } }))),
    compare: (from, to) => unwrap(api.GET('/snapshots/diff', { params: { query: { from, to } } })),
    fork: (id, count, timeout) =>
      unwrap(api.POST('/sandboxes/{sandboxID}/fork', { params: at(id), body: { count, timeout } })),
    lineage: (id) => unwrap(api.GET('/lineage/{id}', { params: { path: { id } } })),
    rollback: (id, snapshotID, { allowOlder } = {}) =>
      unwrap(api.POST('/sandboxes/{sandboxID}/rollback', { params: at(id), body: { snapshotID, allowOlder } })),
  };
}
