/** Binds the contract to handlers: one route for each operation in it, and no other. */
import type { OnceKey } from '@aenv/orchestrator';
import {
  OPERATION_IDS,
  type OperationId,
  type OperationInfo,
  operationInfo,
  type PathParams,
  type QueryParams,
  type RequestBody,
  type ServedOperationId,
  type Success,
} from '@aenv/protocol';
import { AenvError } from '@aenv/std';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { authenticate } from './auth.ts';
import { onceKey } from './once.ts';
import { requestCheck } from './validation.ts';

export interface ApiRequest<Id extends OperationId> {
  params: PathParams<Id>;
  query: QueryParams<Id>;
  body: RequestBody<Id>;
  /** The valid key that came with the request; empty for operations that need none. */
  key: string;
  /** What makes this request one that may be sent again; absent without a header Idempotency-Key. */
  once?: OnceKey;
}

export type ApiReply<Id extends OperationId> = Success<Id> & { headers?: Record<string, string> };

export type Handler<Id extends OperationId> = (request: ApiRequest<Id>) => ApiReply<Id> | Promise<ApiReply<Id>>;

/** An operation of the contract that has no handler here does not compile. */
export type Handlers = { [Id in ServedOperationId]: Handler<Id> };

/** A handler without the types of its operation; the check of the request has established them. */
type AnyHandler = (request: {
  params: unknown;
  query: unknown;
  body: unknown;
  key: string;
  once?: OnceKey;
}) => Promise<{
  status: number;
  body: unknown;
  headers?: Record<string, string>;
}>;

function refusal(reason: string): AnyHandler {
  return () => {
    throw new AenvError('unsupported', reason, { remedy: 'docs/api.md lists what this server supports.' });
  };
}

function answer(info: OperationInfo, handle: AnyHandler, key: (request: FastifyRequest) => string) {
  const check = info.refused === undefined ? requestCheck(info) : () => {};
  return async (request: FastifyRequest, reply: FastifyReply) => {
    const { params, query, body } = request;
    check({ params, query, body });
    const once = onceKey(request);
    const result = await handle({ params, query, body, key: key(request), ...(once ? { once } : {}) });
    return reply
      .headers(result.headers ?? {})
      .code(result.status)
      .send(result.body);
  };
}

/** Registers every operation of the contract on `app`. */
export function bindOperations(app: FastifyInstance, handlers: Handlers, isApiKey: (key: string) => boolean): void {
  const keys = new WeakMap<FastifyRequest, string>();
  for (const id of OPERATION_IDS) {
    const info = operationInfo(id);
    const handle = info.refused === undefined ? handlers[id as ServedOperationId] : refusal(info.refused);
    app.route({
      method: info.method,
      url: info.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      // Before the body is read: a stranger does not get to send one.
      onRequest: async (request) => {
        if (info.security.length > 0) keys.set(request, authenticate(request, info.security, isApiKey));
      },
      handler: answer(info, handle as AnyHandler, (request) => keys.get(request) ?? ''),
    });
  }
}
