/** Figures for Prometheus at /metrics: what the process uses, and what the orchestrator did. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Engine } from '@aenv/orchestrator';
import { AenvError } from '@aenv/std';
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';

export type HttpHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** The text is made when it is asked for; nothing is counted twice. */
export function createMetricsRegistry(stats: Engine['stats']): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  new Gauge({
    name: 'aenv_sandboxes',
    help: 'Sandboxes by state.',
    labelNames: ['state'],
    registers,
    collect() {
      const { running, paused } = stats();
      this.set({ state: 'running' }, running);
      this.set({ state: 'paused' }, paused);
    },
  });
  new Gauge({
    name: 'aenv_network_slots_ready',
    help: 'Network slots that wait for a sandbox.',
    registers,
    collect() {
      this.set(stats().slotsReady);
    },
  });
  new Gauge({
    name: 'aenv_pool_ready',
    help: 'Restored virtual machines that wait for a sandbox.',
    registers,
    collect() {
      this.set(stats().pool.ready);
    },
  });
  new Counter({
    name: 'aenv_pool_claims_total',
    help: 'Starts that asked the pool for a virtual machine, by whether one waited.',
    labelNames: ['outcome'],
    registers,
    collect() {
      const { hits, misses } = stats().pool;
      this.reset();
      this.inc({ outcome: 'hit' }, hits);
      this.inc({ outcome: 'miss' }, misses);
    },
  });
  new Counter({
    name: 'aenv_operations_total',
    help: 'Operations that ended, by outcome.',
    labelNames: ['operation', 'outcome'],
    registers,
    collect() {
      this.reset();
      for (const [operation, { succeeded, failed }] of Object.entries(stats().operations)) {
        this.inc({ operation, outcome: 'succeeded' }, succeeded);
        this.inc({ operation, outcome: 'failed' }, failed);
      }
    },
  });
  new Counter({
    name: 'aenv_operation_seconds_total',
    help: 'Seconds that operations took, added up.',
    labelNames: ['operation'],
    registers,
    collect() {
      this.reset();
      for (const [operation, { seconds }] of Object.entries(stats().operations)) this.inc({ operation }, seconds);
    },
  });
  return registry;
}

const LOOPBACK_PEER = /^(?:::ffff:)?127\.|^::1$/;

/**
 * True for a scraper on this machine, and for one that shows an API key. A request that a proxy on this machine passes
 * on comes from elsewhere, whatever its peer address says.
 */
export function mayReadMetrics(request: IncomingMessage, isApiKey: (key: string) => boolean): boolean {
  const { headers } = request;
  const bearer = /^Bearer (\S+)$/i.exec(headers.authorization ?? '')?.[1];
  const key = headers['x-api-key'] ?? bearer;
  if (typeof key === 'string') return isApiKey(key);
  const forwarded = headers.forwarded ?? headers['x-forwarded-for'] ?? headers.via;
  return forwarded === undefined && LOOPBACK_PEER.test(request.socket.remoteAddress ?? '');
}

function answer(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(body);
}

/** Answers `GET /metrics` and hands everything else to `next`. */
export function withMetrics(registry: Registry, isApiKey: (key: string) => boolean, next: HttpHandler): HttpHandler {
  return (request, response) => {
    if (request.method !== 'GET' || request.url?.split('?')[0] !== '/metrics') return next(request, response);
    if (!mayReadMetrics(request, isApiKey)) {
      const error = new AenvError('unauthorized', 'metrics are for scrapers on this machine or with an API key', {
        remedy: 'Send the key as X-API-Key or as Authorization: Bearer.',
      });
      const body = { code: error.status, message: error.message, error_code: error.code, remedy: error.remedy };
      return answer(response, error.status, 'application/json', JSON.stringify(body));
    }
    registry.metrics().then(
      (text) => answer(response, 200, registry.contentType, text),
      (error) => answer(response, 500, 'text/plain', `${error}`),
    );
  };
}
