/** Sandboxes through the API. */
import type { Schema } from '@aenv/protocol';
import { type Connection, LISTS, unwrap, unwrapWithHeaders } from './transport.ts';

export type Sandbox = Schema<'Sandbox'>;
export type SandboxDetail = Schema<'SandboxDetail'>;
export type SandboxSummary = Schema<'ListedSandbox'>;
export type SandboxState = Schema<'SandboxState'>;
export type SandboxLogEntry = Schema<'SandboxLogEntry'>;

export interface SandboxQuery {
  states?: SandboxState[];
  /** All pairs must match. */
  metadata?: Record<string, string>;
  /** Id or name. */
  template?: string;
}

export interface AenvSandboxes {
  /** `template_not_found`, `capacity_exhausted`, `sandbox_start_failed`. */
  create(request: Schema<'NewSandbox'>): Promise<Sandbox>;
  /** Straight from an image; `image_*`, `registry_*`. */
  createCold(request: Schema<'NewColdSandbox'>): Promise<Sandbox>;
  get(id: string): Promise<SandboxDetail>;
  /** All pages, newest first. */
  list(query?: SandboxQuery): Promise<SandboxSummary[]>;
  kill(id: string): Promise<void>;
  /** `memory: false` keeps only the disk: the sandbox boots when it goes on. */
  pause(id: string, options?: Schema<'PauseSandbox'>): Promise<void>;
  /**
   * Resumes a paused sandbox; of a running one it only ever prolongs the timeout. Seconds. `memory: false` boots it from
   * its disk.
   */
  connect(id: string, timeoutSeconds: number, options?: Schema<'PauseSandbox'>): Promise<Sandbox>;
  /** Counts from now and may shorten. */
  setTimeout(id: string, timeoutSeconds: number): Promise<void>;
  /** Only ever prolongs; at most 3600. */
  refresh(id: string, durationSeconds: number): Promise<void>;
  /** Oldest first, those at or after `since` (milliseconds since the epoch); at most 1000. */
  logs(id: string, since?: number): Promise<SandboxLogEntry[]>;
}

/** As the API wants it: a form whose keys and values are percent-encoded once more. */
function metadataQuery(metadata: Record<string, string> | undefined): string | undefined {
  if (!metadata || Object.keys(metadata).length === 0) return undefined;
  const encoded = Object.entries(metadata).map(([key, value]): [string, string] => [
    encodeURIComponent(key),
    encodeURIComponent(value),
  ]);
  return new URLSearchParams(encoded).toString();
}

export function aenvSandboxes({ api }: Connection): AenvSandboxes {
  const at = (sandboxID: string) => ({ path: { sandboxID } });
  return {
    create: (body) => unwrap(api.POST('/sandboxes', { body })),
    createCold: (body) => unwrap(api.POST('/sandboxes-cold', { body })),
    get: (id) => unwrap(api.GET('/sandboxes/{sandboxID}', { params: at(id) })),
    async list({ states, metadata, template } = {}) {
      const found: SandboxSummary[] = [];
      let nextToken: string | undefined;
      do {
        const query = { state: states, metadata: metadataQuery(metadata), template, nextToken };
        const page = await unwrapWithHeaders(api.GET('/v2/sandboxes', { params: { query }, querySerializer: LISTS }));
        found.push(...page.data);
        nextToken = page.headers.get('x-next-token') ?? undefined;
      } while (nextToken);
      return found;
    },
    kill: async (id) => void (await unwrap(api.DELETE('/sandboxes/{sandboxID}', { params: at(id) }))),
    pause: async (id, body = {}) =>
      void (await unwrap(api.POST('/sandboxes/{sandboxID}/pause', { params: at(id), body }))),
    connect: (id, timeout, options) =>
      unwrap(api.POST('/sandboxes/{sandboxID}/connect', { params: at(id), body: { timeout, ...options } })),
    setTimeout: async (id, timeout) =>
      void (await unwrap(api.POST('/sandboxes/{sandboxID}/timeout', { params: at(id), body: { timeout } }))),
    refresh: async (id, duration) =>
      void (await unwrap(api.POST('/sandboxes/{sandboxID}/refreshes', { params: at(id), body: { duration } }))),
    logs: async (id, since = 0) => {
      const query = { cursor: since, direction: 'forward' as const };
      return (await unwrap(api.GET('/v2/sandboxes/{sandboxID}/logs', { params: { ...at(id), query } }))).logs;
    },
  };
}
