/** One way into a sandbox: where it is, which headers get there, and the two protocols that aenvd speaks. */
import type { Transport } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-web';
import { Agent, type Dispatcher, fetch } from 'undici';
import { errorFromCall, errorFromResponse } from './errors.ts';

/** The port that aenvd serves on inside every sandbox. */
export const ENVD_PORT = 49983;

/** Seconds of silence after which aenvd sends a keepalive on a stream. */
export const KEEPALIVE_SECONDS = 30;

/** Three missed keepalives: the sandbox, or the way to it, is gone. */
const SILENCE_MS = 3 * KEEPALIVE_SECONDS * 1000;

export interface GuestAddress {
  /** Host and port of aenvd itself. */
  host: string;
  port?: number;
}

export interface GuestOrigin {
  /** `http://host:port` of a server whose proxy forwards to aenvd by headers. */
  origin: string;
}

export type GuestClientOptions = (GuestAddress | GuestOrigin) & {
  /** Sent with every request, such as the routing headers of the proxy. */
  headers?: Record<string, string>;
  /** Of a secure sandbox. */
  accessToken?: string;
  /** The host's own key; only the orchestrator has it. */
  initKey?: string;
  /** Whom requests act as; absent: the sandbox's default user. */
  user?: string;
  /** Shared connections; absent: connections of this client's own, which `close` ends. */
  dispatcher?: Dispatcher;
};

export interface HttpCall {
  method: 'GET' | 'POST';
  path: string;
  query?: Record<string, string | undefined>;
  headers?: Record<string, string>;
  body?: Dispatcher.DispatchOptions['body'];
  signal?: AbortSignal;
  /** Milliseconds until the answer begins; 0: no limit. */
  headersTimeoutMs?: number;
}

export interface Connection {
  transport: Transport;
  user: string | undefined;
  initKey: string | undefined;
  /** An answer of status 2xx; anything else throws an AenvError. */
  http(call: HttpCall): Promise<Dispatcher.ResponseData>;
  close(): Promise<void>;
}

function originOf(options: GuestAddress | GuestOrigin): string {
  if ('origin' in options) return new URL(options.origin).origin;
  const host = options.host.includes(':') ? `[${options.host}]` : options.host;
  return `http://${host}:${options.port ?? ENVD_PORT}`;
}

/** Connections are never shared between two lives of a VM: one that was open across a pause hangs after the resume. */
function ownDispatcher(): Agent {
  return new Agent({ connect: { timeout: 10_000 }, bodyTimeout: SILENCE_MS, headersTimeout: 60_000 });
}

function definedOnly(query: HttpCall['query']): Record<string, string> {
  return Object.fromEntries(
    Object.entries(query ?? {}).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

export function openConnection(options: GuestClientOptions): Connection {
  const origin = originOf(options);
  const dispatcher = options.dispatcher ?? ownDispatcher();
  const common: Record<string, string> = { ...options.headers };
  if (options.accessToken !== undefined) common['x-access-token'] = options.accessToken;

  async function connectFetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    const headers = { ...common, ...Object.fromEntries(new Headers(init?.headers)) };
    const response = await fetch(String(input), {
      method: init?.method,
      headers,
      body: init?.body as Uint8Array<ArrayBuffer>,
      signal: init?.signal,
      dispatcher,
    });
    if (response.ok) return response as unknown as Response;
    throw errorFromResponse(response.status, await response.text());
  }

  async function http(call: HttpCall): Promise<Dispatcher.ResponseData> {
    let response: Dispatcher.ResponseData;
    try {
      response = await dispatcher.request({
        origin,
        path: call.path,
        query: definedOnly(call.query),
        method: call.method,
        headers: { ...common, ...call.headers },
        body: call.body,
        signal: call.signal,
        headersTimeout: call.headersTimeoutMs,
      });
    } catch (error) {
      if (call.signal?.aborted) throw call.signal.reason;
      throw errorFromCall(error);
    }
    if (response.statusCode < 300) return response;
    throw errorFromResponse(response.statusCode, await response.body.text());
  }

  return {
    transport: createConnectTransport({
      baseUrl: origin,
      useBinaryFormat: true,
      fetch: connectFetch as typeof globalThis.fetch,
    }),
    user: options.user,
    initKey: options.initKey,
    http,
    close: async () => {
      if (options.dispatcher === undefined) await dispatcher.destroy();
    },
  };
}
