/**
 * A server for tests of the CLI: the few API operations that it calls, over sandboxes in memory, and a proxy by headers
 * to a real guest daemon on this machine.
 */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import type { BuildInfo, SandboxLogEntry, SandboxSummary, Snapshot, Template } from '@aenv/client';

export const API_KEY = `e2b_${'a1'.repeat(20)}`;

export interface FakeSandbox extends SandboxSummary {
  envdAccessToken?: string;
}

export interface FakeServer {
  url: string;
  sandboxes: Map<string, FakeSandbox>;
  templates: Map<string, Template>;
  logs: SandboxLogEntry[];
  /** Answers to the next polls of a build; the last one stays. */
  build: Omit<BuildInfo, 'templateID' | 'buildID' | 'logs'>[];
  /** `POST /sandboxes {"templateID":…}` and so on, in order. */
  requests: string[];
  /** Answers this instead of what the route would, once. */
  failNext(status: number, body: object): void;
  [Symbol.asyncDispose](): Promise<void>;
}

interface Answer {
  status: number;
  body?: unknown;
  headers?: Record<string, string>;
}

export function fakeSandbox(id: string, change: Partial<FakeSandbox> = {}): FakeSandbox {
  return {
    sandboxID: id,
    templateID: 'tmpl1',
    alias: 'base',
    clientID: 'aenv',
    startedAt: '2026-01-01T00:00:00.000Z',
    endAt: '2026-01-01T00:05:00.000Z',
    cpuCount: 2,
    memoryMB: 512,
    diskSizeMB: 1024,
    metadata: {},
    state: 'running',
    envdVersion: '0.6.13',
    ...change,
  };
}

export function fakeTemplate(id: string, name: string): Template {
  return {
    templateID: id,
    buildID: '00000000-0000-4000-8000-000000000000',
    cpuCount: 2,
    memoryMB: 512,
    diskSizeMB: 1024,
    public: false,
    aliases: [name],
    names: [name],
    createdAt: '2026-01-01T00:00:00.000Z',
    updatedAt: '2026-01-01T00:00:00.000Z',
    lastSpawnedAt: null,
    spawnCount: 0,
    buildCount: 1,
    envdVersion: '0.6.13',
    buildStatus: 'ready',
  };
}

const DIFFERENCE = {
  files: [
    { path: '/new', kind: 'added' },
    { path: '/other\u001b[2J', kind: 'changed' },
    { path: '/old', kind: 'removed' },
  ],
  memory: { changedMB: 1.25, totalMB: 256 },
};

function fakeSnapshot(sandboxID: string, name: string): Snapshot {
  return {
    snapshotID: name.includes(':') ? name : `${name}:default`,
    names: [],
    sandboxID,
    state: 'ready',
    durable: true,
    memory: true,
    createdAt: '2026-01-01T00:00:00.000Z',
    cpuCount: 1,
    memoryMB: 256,
    diskSizeMB: 1024,
  };
}

function failure(status: number, error_code: string, message: string, remedy?: string): Answer {
  return { status, body: { code: status, message, error_code, remedy } };
}

function started(sandbox: FakeSandbox, status: number): Answer {
  const { templateID, sandboxID, alias, clientID, envdVersion, envdAccessToken } = sandbox;
  return { status, body: { templateID, sandboxID, alias, clientID, envdVersion, envdAccessToken, domain: null } };
}

/** Two sandboxes a page, so that paging is seen. */
function page(sandboxes: FakeSandbox[], query: URLSearchParams): Answer {
  const states = query.get('state')?.split(',');
  const matching = sandboxes.filter(({ state }) => states?.includes(state) ?? true);
  const start = Number(query.get('nextToken') ?? 0);
  const headers = matching.length > start + 2 ? { 'x-next-token': String(start + 2) } : undefined;
  return { status: 200, body: matching.slice(start, start + 2), headers };
}

class Routes {
  readonly server: Omit<FakeServer, 'url' | 'failNext' | typeof Symbol.asyncDispose>;
  created = 0;

  constructor(server: Routes['server']) {
    this.server = server;
  }

  answer(method: string, url: URL, body: Record<string, unknown>): Answer {
    const [first, second, third] = url.pathname
      .split('/')
      .slice(1)
      .filter((part) => !/^v\d$/.test(part));
    if (first === 'doctor') {
      return {
        status: 200,
        body: { findings: [{ check: 'qemu', status: 'fail', detail: 'not there', remedy: 'Get it.' }] },
      };
    }
    if (first === 'sandboxes-cold') return this.#create({ ...body, templateID: body.image });
    if (first === 'sandboxes') return this.#sandboxes(method, url, second, third, body);
    if (first === 'snapshots' && second === 'diff') return { status: 200, body: DIFFERENCE };
    if (first === 'snapshots') return { status: 200, body: [fakeSnapshot('box', 'work:v1')] };
    if (first === 'templates') return this.#templates(method, second, third);
    return failure(404, 'not_found', `${method} ${url.pathname} does not exist`);
  }

  #create(body: Record<string, unknown>): Answer {
    if (body.templateID === 'missing')
      return failure(404, 'template_not_found', "template 'missing' does not exist", 'List them.');
    this.created += 1;
    const token = body.secure ? { envdAccessToken: 'token' } : {};
    const sandbox = fakeSandbox(`new${this.created}`, { templateID: String(body.templateID), ...token });
    this.server.sandboxes.set(sandbox.sandboxID, sandbox);
    return started(sandbox, 201);
  }

  #sandboxes(
    method: string,
    url: URL,
    id: string | undefined,
    action: string | undefined,
    body: Record<string, unknown>,
  ): Answer {
    const { sandboxes, logs } = this.server;
    if (id === undefined)
      return method === 'POST' ? this.#create(body) : page([...sandboxes.values()], url.searchParams);
    const sandbox = sandboxes.get(id);
    if (!sandbox) return failure(404, 'sandbox_not_found', `sandbox ${id} does not exist`, 'List them: aenv list');
    if (method === 'DELETE') sandboxes.delete(id);
    if (method === 'GET' && action === undefined) return { status: 200, body: sandbox };
    if (action === 'logs') {
      const since = Number(url.searchParams.get('cursor') ?? 0);
      return { status: 200, body: { logs: logs.filter(({ timestamp }) => Date.parse(timestamp) >= since) } };
    }
    if (action === 'snapshots') return { status: 201, body: fakeSnapshot(id, String(body.name ?? 'tmpl2')) };
    if (action === 'fork') return { status: 201, body: this.#fork(Number(body.count)) };
    if (action === 'rollback') return started(sandbox, 200);
    if (action === 'pause') sandbox.state = 'paused';
    if (action !== 'connect') return { status: 204 };
    const status = sandbox.state === 'paused' ? 201 : 200;
    sandbox.state = 'running';
    return started(sandbox, status);
  }

  /** The last child does not start. */
  #fork(count: number) {
    const failed = { error: failure(503, 'capacity_exhausted', 'no room').body };
    return Array.from({ length: count }, (_, index) =>
      index === count - 1 ? failed : { sandbox: this.#create({ templateID: 'base' }).body },
    );
  }

  #templates(method: string, id: string | undefined, action: string | undefined): Answer {
    const { templates, build } = this.server;
    const ids = { templateID: 'tmpl1', buildID: '00000000-0000-4000-8000-000000000000' };
    if (id === undefined && method === 'POST') {
      return { status: 202, body: { ...ids, public: false, names: [], tags: [], aliases: [] } };
    }
    if (id === undefined) return { status: 200, body: [...templates.values()] };
    if (action === 'builds' && method === 'POST') return { status: 202 };
    if (action === 'builds') {
      const next = build.length > 1 ? build.shift() : build[0];
      return { status: 200, body: { ...ids, logs: [], ...next } };
    }
    if (!templates.has(id)) return failure(404, 'template_not_found', `template '${id}' does not exist`);
    if (method === 'DELETE') templates.delete(id);
    if (method === 'DELETE') return { status: 204 };
    return { status: 200, body: { ...templates.get(id), builds: [{ buildID: ids.buildID, status: 'ready' }] } };
  }
}

function forward(incoming: IncomingMessage, outgoing: ServerResponse, port: number): void {
  const { method, url: path, headers } = incoming;
  const upstream = request({ host: '127.0.0.1', port, method, path, headers }, (response) => {
    outgoing.writeHead(response.statusCode ?? 502, response.headers);
    response.pipe(outgoing);
    response.on('error', () => outgoing.destroy());
  });
  upstream.on('error', () => outgoing.destroy());
  outgoing.on('close', () => upstream.destroy());
  incoming.pipe(upstream);
}

/** `guestPort`: where requests with the routing headers go. */
export async function startFakeServer(guestPort?: number): Promise<FakeServer> {
  const state = { sandboxes: new Map(), templates: new Map(), logs: [], build: [], requests: [] };
  const routes = new Routes(state);
  let failing: Answer | undefined;

  async function handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    if (incoming.headers['e2b-sandbox-id'] !== undefined && guestPort !== undefined) {
      return forward(incoming, outgoing, guestPort);
    }
    const url = new URL(incoming.url ?? '/', 'http://fake');
    const text =
      incoming.headers['content-length'] === undefined ? {} : ((await json(incoming)) as Record<string, unknown>);
    routes.server.requests.push(`${incoming.method} ${url.pathname} ${JSON.stringify(text)}`);
    const refused =
      incoming.headers['x-api-key'] === API_KEY ? undefined : failure(401, 'unauthorized', 'the API key is wrong');
    const { status, body, headers } = refused ?? failing ?? routes.answer(incoming.method ?? 'GET', url, text);
    failing = undefined;
    outgoing.writeHead(status, { 'content-type': 'application/json', ...headers });
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  }

  const server = createServer((incoming, outgoing) => {
    handle(incoming, outgoing).catch((error: unknown) => outgoing.destroy(error as Error));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // The same object that the routes read, so that a test may replace its parts.
  return Object.assign(state, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    failNext(status: number, body: unknown) {
      failing = { status, body };
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}
