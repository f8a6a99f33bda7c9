/** HTTP to an AgentENV server, with failures as AenvErrors. */
import { errorFromResponse } from '@aenv/guest';
import type { paths } from '@aenv/protocol';
import { AenvError, isSystemError } from '@aenv/std';
import createFetchClient, { type Client } from 'openapi-fetch';
import { Agent, fetch, Request } from 'undici';

export interface AenvClientOptions {
  /** `http://host:port` of the server. */
  url: string;
  apiKey: string;
}

export interface Connection {
  api: Client<paths>;
  close(): Promise<void>;
}

/** How lists travel in a query: `state=a,b`. */
export const LISTS = { array: { style: 'form', explode: false } } as const;

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** An answer with another status than 2xx becomes the error that its body describes. */
export async function unwrap<T>(answer: Promise<Answer<T>>): Promise<T> {
  return (await unwrapWithHeaders(answer)).data;
}

/** As `unwrap`, for operations that say something in their headers. */
export async function unwrapWithHeaders<T>(answer: Promise<Answer<T>>): Promise<{ data: T; headers: Headers }> {
  const { data, error, response } = await answer;
  if (response.ok) return { data: data as T, headers: response.headers };
  throw errorFromResponse(response.status, typeof error === 'string' ? error : JSON.stringify(error ?? {}));
}

/** The system's reason (ECONNREFUSED, ENOTFOUND) lies below "fetch failed". */
function unreachable(url: string, reason: unknown): AenvError {
  let deepest = reason;
  while (deepest instanceof Error && deepest.cause !== undefined) deepest = deepest.cause;
  if (deepest instanceof AggregateError) deepest = deepest.errors[0];
  const detail = isSystemError(deepest, 'ECONNREFUSED') ? 'nothing listens there' : detailOf(deepest);
  return new AenvError('server_unreachable', `the server at ${url} does not answer: ${detail}`, {
    remedy: 'Start it with `make serve`, or name another one with AENV_URL or `aenv auth`.',
    cause: reason,
  });
}

function detailOf(reason: unknown): string {
  return reason instanceof Error ? reason.message || reason.name : String(reason);
}

export function openConnection({ url, apiKey }: AenvClientOptions): Connection {
  // A cold start pulls an image before its answer begins, so there is no limit on the wait for headers.
  const dispatcher = new Agent({ connect: { timeout: 10_000 }, headersTimeout: 0 });
  const send = async (request: globalThis.Request): Promise<Response> => {
    try {
      return (await fetch(request as unknown as Request, { dispatcher })) as unknown as Response;
    } catch (error) {
      throw unreachable(url, error);
    }
  };
  return {
    api: createFetchClient<paths>({
      baseUrl: url,
      headers: { 'x-api-key': apiKey },
      fetch: send,
      Request: Request as unknown as typeof globalThis.Request,
    }),
    close: () => dispatcher.destroy(),
  };
}
