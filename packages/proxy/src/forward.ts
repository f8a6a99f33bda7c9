/** Passes requests on to sandboxes and streams the answers back. Nothing is buffered beyond the streams' own limits. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Agent, type Dispatcher } from 'undici';
import { connectionLost, portClosed, type Refusal, sandboxNotFound } from './answers.ts';
import type { RequestHeaders, Target } from './classify.ts';
import type { Gate } from './gate.ts';
import { endToEnd } from './headers.ts';
import { breakOff, Passing } from './passing.ts';

const CONNECT_TIMEOUT_MS = 10_000;
/** Below what servers in sandboxes usually wait, so that a connection is not used while they close it. */
const KEEP_ALIVE_MS = 4_000;

/** The connections to one sandbox; they end together. */
interface Peer {
  agent: Agent;
  tunnels: Set<Socket>;
}

export class Forwarder {
  readonly #gate: Gate;
  readonly #peers = new Map<string, Peer>();

  constructor(gate: Gate) {
    this.#gate = gate;
  }

  /** Cuts every connection to the sandbox; clients notice at once. */
  forget(sandboxId: string): void {
    const peer = this.#peers.get(sandboxId);
    if (!peer) return;
    this.#peers.delete(sandboxId);
    void peer.agent.destroy();
    for (const socket of peer.tunnels) socket.destroy();
  }

  close(): void {
    for (const id of [...this.#peers.keys()]) this.forget(id);
  }

  forward(target: Target, address: string, request: IncomingMessage, response: ServerResponse): void {
    const passing = new Passing(response, (error) => refuse(response, this.#explain(target, error)));
    this.#peer(target.sandboxId).agent.dispatch(
      {
        origin: `http://${address}:${target.port}`,
        path: target.path,
        method: (request.method ?? 'GET') as Dispatcher.HttpMethod,
        headers: withHost(request),
        body: hasBody(request) ? request : null,
      },
      passing,
    );
  }

  /** Connects the client's socket to the sandbox for what comes after an upgrade, such as WebSocket. */
  tunnel(target: Target, address: string, request: IncomingMessage, client: Socket, head: Buffer): void {
    const { tunnels } = this.#peer(target.sandboxId);
    const upstream = connect({ host: address, port: target.port, timeout: CONNECT_TIMEOUT_MS });
    const end = () => {
      tunnels.delete(client);
      client.destroy();
      upstream.destroy();
    };
    tunnels.add(client);
    let connected = false;
    upstream.once('connect', () => {
      connected = true;
      upstream.setTimeout(0);
      upstream.setNoDelay(true);
      client.setNoDelay(true);
      // As they came: Node reads the bytes of a head as Latin-1.
      upstream.write(upgradeHead(request, target.path), 'latin1');
      upstream.write(head);
      client.pipe(upstream);
      upstream.pipe(client);
    });
    upstream.once('timeout', end);
    upstream.once('error', (error) => {
      if (!connected) refuseSocket(client, this.#explain(target, error));
      end();
    });
    upstream.once('close', end);
    client.once('error', end);
    client.once('close', end);
  }

  #peer(sandboxId: string): Peer {
    const known = this.#peers.get(sandboxId);
    if (known) return known;
    const agent = new Agent({
      connect: { timeout: CONNECT_TIMEOUT_MS },
      keepAliveTimeout: KEEP_ALIVE_MS,
      // How long an answer may take is between the client and the sandbox.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    const peer = { agent, tunnels: new Set<Socket>() };
    this.#peers.set(sandboxId, peer);
    return peer;
  }

  #explain(target: Target, error: unknown): Refusal {
    if (!this.#gate.isRunning(target)) return sandboxNotFound(target);
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ECONNREFUSED') return portClosed(target);
    return connectionLost(target, message);
  }
}

function hasBody({ headers, method }: IncomingMessage): boolean {
  if (method === 'GET' || method === 'HEAD') return 'content-length' in headers || 'transfer-encoding' in headers;
  // HTTP/2 has no header that says whether a body follows; its stream ends at once when none does.
  return ':method' in headers || 'content-length' in headers || 'transfer-encoding' in headers;
}

function withHost(request: IncomingMessage): Record<string, string | string[]> {
  const headers = endToEnd(request.headers as RequestHeaders);
  const authority = request.headers[':authority'];
  return typeof authority === 'string' ? { host: authority, ...headers } : headers;
}

export function refuse(response: ServerResponse, { status, body }: Refusal): void {
  if (response.headersSent) {
    breakOff(response);
    return;
  }
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'access-control-allow-origin': '*',
  });
  response.end(text);
}

export function refuseSocket(socket: Socket, { status, body }: Refusal): void {
  const text = JSON.stringify(body);
  socket.end(
    `HTTP/1.1 ${status} Refused\r\nContent-Type: application/json\r\nConnection: close\r\n` +
      `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
}

/** The client's request once more, as it came apart from what was meant for us. */
function upgradeHead(request: IncomingMessage, path: string): string {
  const { connection: _, upgrade, ...headers } = request.headers;
  const lines = [`${request.method} ${path} HTTP/1.1`, 'Connection: Upgrade', `Upgrade: ${upgrade}`];
  for (const [name, value] of Object.entries(endToEnd(headers)))
    for (const one of [value].flat()) lines.push(`${name}: ${one}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}
