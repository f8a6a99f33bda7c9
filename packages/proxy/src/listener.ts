/** The one socket that the server listens on: API and sandboxes, HTTP/1.1, HTTP/2 without TLS, and upgrades. */
import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import { createServer, type Socket } from 'node:net';
import { AenvError, isSystemError, type Logger } from '@aenv/std';
import { Activity } from './activity.ts';
import { invalid } from './answers.ts';
import { type Classified, classify, type RequestHeaders } from './classify.ts';
import { Forwarder, refuse, refuseSocket } from './forward.ts';
import { Gate } from './gate.ts';
import { breakOff } from './passing.ts';
import type { RouteSource } from './routes.ts';

/** What answers requests to the API. */
export type ControlHandler = (request: IncomingMessage, response: ServerResponse) => void;

export interface ListenerOptions {
  routes: RouteSource;
  control: ControlHandler;
  isApiKey: (key: string) => boolean;
  /** Domains whose names `PORT-ID.DOMAIN` mean a port of a sandbox; all when there are none. */
  domains: readonly string[];
  logger: Logger;
}

export interface Listener {
  /** Resolves with the port, which the system chooses for 0. `address_in_use`, `config_invalid`. */
  listen(address: { host: string; port: number }): Promise<{ port: number }>;
  /** Cuts what is connected to a sandbox whose address is no longer valid. */
  forget(sandboxId: string): void;
  /** End of the last traffic to a sandbox, milliseconds since the epoch (0 = none); undefined while there is some. */
  quietSince(sandboxId: string): number | undefined;
  close(): Promise<void>;
}

/** A client has this long to send the head of a request, milliseconds. */
const HEAD_TIMEOUT_MS = 30_000;
const MAX_HEADER_BYTES = 64 * 1024;
/** First bytes of HTTP/2 (RFC 9113 §3.4); no method of HTTP/1.1 begins so. */
const HTTP2_PREFACE = Buffer.from('PRI');

export function createListener({ routes, control, isApiKey, domains, logger }: ListenerOptions): Listener {
  const gate = new Gate({ routes, isApiKey });
  const forwarder = new Forwarder(gate);
  const activity = new Activity();
  const sockets = new Set<Socket>();

  const classified = (request: IncomingMessage): Classified => {
    const headers = request.headers as RequestHeaders;
    const host = headers[':authority'] ?? headers.host;
    return classify(typeof host === 'string' ? host : undefined, headers, request.url ?? '/', domains);
  };

  async function toSandbox(
    request: IncomingMessage,
    response: ServerResponse,
    { target }: Extract<Classified, { kind: 'sandbox' }>,
  ) {
    activity.begin(target.sandboxId, response);
    const passage = await gate.pass(target, request.headers as RequestHeaders);
    if (passage.kind === 'refused') refuse(response, passage.refusal);
    else forwarder.forward(target, passage.address, request, response);
  }

  function onRequest(request: IncomingMessage, response: ServerResponse): void {
    const kind = classified(request);
    if (kind.kind === 'control') control(request, response);
    else if (kind.kind === 'invalid') refuse(response, invalid(kind.message));
    else
      toSandbox(request, response, kind).catch((err: unknown) => {
        logger.error({ err, sandboxId: kind.target.sandboxId }, 'a request could not be passed on');
        breakOff(response);
      });
  }

  async function onUpgrade(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    socket.on('error', () => socket.destroy());
    const kind = classified(request);
    if (kind.kind !== 'sandbox') return refuseSocket(socket, invalid('nothing here can be upgraded'));
    activity.begin(kind.target.sandboxId, socket);
    const passage = await gate.pass(kind.target, request.headers);
    if (passage.kind === 'refused') return refuseSocket(socket, passage.refusal);
    forwarder.tunnel(kind.target, passage.address, request, socket, head);
  }

  const http1 = createHttpServer(
    { headersTimeout: HEAD_TIMEOUT_MS, requestTimeout: 0, maxHeaderSize: MAX_HEADER_BYTES, keepAliveTimeout: 75_000 },
    onRequest,
  );
  http1.on('upgrade', (request, socket, head) => {
    onUpgrade(request, socket as Socket, head).catch((err: unknown) => {
      logger.error({ err }, 'an upgrade could not be passed on');
      socket.destroy();
    });
  });
  // Its requests and answers have the shape of HTTP/1.1's.
  const http2 = createHttp2Server({}, onRequest as never);
  http2.on('sessionError', (err) => logger.debug({ err }, 'an HTTP/2 connection broke'));

  const server = createServer({ noDelay: true, pauseOnConnect: false }, (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    socket.setTimeout(HEAD_TIMEOUT_MS, () => socket.destroy());
    whenProtocolIsKnown(socket, (protocol) => {
      socket.setTimeout(0);
      socket.removeAllListeners('timeout');
      (protocol === 'http2' ? http2 : http1).emit('connection', socket);
    });
  });

  return {
    listen: async ({ host, port }) => {
      server.listen(port, host);
      try {
        await once(server, 'listening');
      } catch (error) {
        throw listenError(error, host, port);
      }
      return { port: (server.address() as { port: number }).port };
    },
    forget: (sandboxId) => {
      forwarder.forget(sandboxId);
      activity.forget(sandboxId);
    },
    quietSince: (sandboxId) => activity.quietSince(sandboxId),
    close: async () => {
      const closed = server.listening ? once(server, 'close') : undefined;
      server.close();
      forwarder.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** Told by the first bytes, however few of them come at once; they stay in the socket. */
function whenProtocolIsKnown(socket: Socket, use: (protocol: 'http1' | 'http2') => void): void {
  let head = Buffer.alloc(0);
  const onReadable = () => {
    const chunk = socket.read() as Buffer | null;
    if (!chunk) return;
    head = Buffer.concat([head, chunk]);
    const compared = Math.min(head.length, HTTP2_PREFACE.length);
    const isPreface = head.subarray(0, compared).equals(HTTP2_PREFACE.subarray(0, compared));
    if (isPreface && compared < HTTP2_PREFACE.length) return;
    socket.off('readable', onReadable);
    socket.unshift(head);
    use(isPreface ? 'http2' : 'http1');
  };
  socket.on('readable', onReadable);
}

function listenError(error: unknown, host: string, port: number): AenvError {
  if (isSystemError(error, 'EADDRINUSE')) {
    return new AenvError('address_in_use', `${host}:${port} is in use by another process`, {
      remedy: 'Set AENV_LISTEN=HOST:PORT to another address, or end the other process.',
      cause: error,
    });
  }
  const detail = error instanceof Error ? error.message : String(error);
  return new AenvError('config_invalid', `cannot listen on ${host}:${port}: ${detail}`, { cause: error });
}
