/** The control plane as one request handler over an engine. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Engine } from '@aenv/orchestrator';
import { AenvError, type Logger } from '@aenv/std';
import fastify, { type FastifyInstance, type InjectOptions, type LightMyRequestResponse } from 'fastify';
import { bindOperations } from './binder.ts';
import { addBodyParsers } from './bodies.ts';
import { sendError } from './errors.ts';
import { buildHandlers } from './handlers/builds.ts';
import { logHandlers } from './handlers/logs.ts';
import { sandboxHandlers } from './handlers/sandboxes.ts';
import { serverHandlers } from './handlers/server.ts';
import { snapshotHandlers } from './handlers/snapshots.ts';
import { templateHandlers } from './handlers/templates.ts';

export interface ApiOptions {
  engine: Engine;
  /** Compares in constant time. */
  isApiKey: (key: string) => boolean;
  /** Of the server. */
  version: string;
  /** Where SDKs find the ports of a sandbox (`PORT-ID.domain`); null leaves them the domain they are configured with. */
  domain: string | null;
  logger: Logger;
  limits: {
    /** Largest request body. */
    bodyBytes: number;
  };
}

export interface Api {
  /** Answers one request; call it after `ready` only. */
  handler: (request: IncomingMessage, response: ServerResponse) => void;
  ready: () => Promise<void>;
  /** A request without a socket, for tests. */
  inject: (request: InjectOptions) => Promise<LightMyRequestResponse>;
  close: () => Promise<void>;
}

const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

/** The client's request id when it has a harmless shape, so that its log and ours can be laid side by side. */
function requestId(request: { headers: IncomingMessage['headers'] }): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID();
}

/** The SDK runs in browsers too. The key travels in a header, never in a cookie, so any origin may ask. */
const CORS_HEADERS = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'X-Next-Token, X-Total-Running, X-Request-Id',
};
const PREFLIGHT_HEADERS = {
  'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
  'access-control-allow-headers': '*, Authorization',
  'access-control-max-age': '600',
};

function addHooks(app: FastifyInstance, logger: Logger): void {
  app.addHook('onRequest', async (request, reply) => {
    reply.headers({ ...CORS_HEADERS, 'x-request-id': request.id });
    if (request.method === 'OPTIONS') return reply.code(204).headers(PREFLIGHT_HEADERS).send();
  });
  app.addHook('onResponse', async (request, reply) => {
    const fields = {
      requestId: request.id,
      method: request.method,
      path: request.url.split('?')[0],
      status: reply.statusCode,
      milliseconds: Math.round(reply.elapsedTime * 10) / 10,
    };
    logger.info(fields, 'request');
  });
}

export function createApi(options: ApiOptions): Api {
  const { engine, logger, domain } = options;
  const app = fastify({
    logger: false,
    genReqId: requestId,
    bodyLimit: options.limits.bodyBytes,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 300 },
    frameworkErrors: (error, request, reply) => sendError(logger, error, request, reply),
  });
  addHooks(app, logger);
  addBodyParsers(app);
  app.setErrorHandler((error, request, reply) => sendError(logger, error, request, reply));
  app.setNotFoundHandler((request) => {
    throw new AenvError('not_found', `There is no ${request.method} ${request.url.split('?')[0]}.`, {
      remedy: 'docs/api.md lists what this server serves.',
    });
  });
  const handlers = {
    ...serverHandlers(engine, options.version),
    ...sandboxHandlers(engine, domain),
    ...snapshotHandlers(engine, domain),
    ...logHandlers(engine),
    ...templateHandlers(engine),
    ...buildHandlers(engine),
  };
  bindOperations(app, handlers, options.isApiKey);
  return {
    handler: (request, response) => app.routing(request, response),
    ready: async () => {
      await app.ready();
    },
    inject: (request) => app.inject(request),
    close: () => app.close(),
  };
}
