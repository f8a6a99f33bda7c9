/** A listener on loopback with one sandbox behind it, whose ports are servers of the test. */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect, type Server as TcpServer } from 'node:net';
import { silentLogger } from '@aenv/std';
import { Agent, type Dispatcher } from 'undici';
import { createListener, type Listener, type ProxyRoute } from '../index.ts';

export const SANDBOX = 'ibox';
export const DOMAIN = 'example.test';
export const API_KEY = 'the key';

export class World implements AsyncDisposable {
  readonly listener: Listener;
  readonly agent = new Agent();
  /** What the server knows about the sandbox; a test may replace it. */
  route: ProxyRoute = { kind: 'running', address: '127.0.0.1', secure: false };
  wake = (): Promise<void> => Promise.reject(new Error('nobody said that it may be woken'));
  port = 0;
  readonly #servers: TcpServer[] = [];

  private constructor() {
    this.listener = createListener({
      routes: {
        route: (id) => (id === SANDBOX ? this.route : { kind: 'unknown' }),
        wake: () => this.wake(),
      },
      control: (_request, response) => void response.end('control'),
      isApiKey: (key) => key === API_KEY,
      domains: [DOMAIN],
      logger: silentLogger,
    });
  }

  static async open(): Promise<World> {
    const world = new World();
    ({ port: world.port } = await world.listener.listen({ host: '127.0.0.1', port: 0 }));
    return world;
  }

  /** Starts a server in the sandbox; returns its port. */
  async serve(server: RequestListener | TcpServer): Promise<number> {
    const started: TcpServer = typeof server === 'function' ? createServer(server) : server;
    started.listen(0, '127.0.0.1');
    await once(started, 'listening');
    this.#servers.push(started);
    return (started.address() as AddressInfo).port;
  }

  /** Requests a port of the sandbox by its headers. */
  request(port: number, options: Partial<Dispatcher.RequestOptions> = {}): Promise<Dispatcher.ResponseData> {
    const headers = { ...addressOf(port), ...(options.headers as Record<string, string>) };
    return this.agent.request({
      origin: `http://127.0.0.1:${this.port}`,
      path: '/',
      method: 'GET',
      ...options,
      headers,
    });
  }

  /** Sends bytes as they are; resolves with all that comes back until the connection ends. */
  async raw(text: string): Promise<string> {
    const socket = connect(this.port, '127.0.0.1').setEncoding('latin1');
    let answer = '';
    socket.on('data', (chunk) => {
      answer += chunk;
    });
    socket.on('error', () => {});
    socket.write(text, 'latin1');
    await once(socket, 'close');
    return answer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.agent.destroy();
    await this.listener.close();
    for (const server of this.#servers) {
      (server as Partial<Server>).closeAllConnections?.();
      server.close();
    }
  }
}

export function addressOf(port: number): Record<string, string> {
  return { 'e2b-sandbox-id': SANDBOX, 'e2b-sandbox-port': String(port) };
}
