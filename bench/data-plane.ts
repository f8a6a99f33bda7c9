/** Requests to a guest by way of the proxy, against the same requests to the guest itself. */
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Server } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { createListener } from '@aenv/proxy';
import { silentLogger } from '@aenv/std';
import { Agent } from 'undici';
import type { Bench, BenchSandbox } from './environment.ts';
import { alternate, type Result, timed } from './statistics.ts';

const ROUND_TRIPS = 100;
const DOWNLOADS = 7;
const GUEST_FILE_MB = 64;
const HOST_STREAM_MB = 512;
const ENVD_PORT = 49983;

interface Target {
  origin: string;
  headers: Record<string, string>;
}

function throughProxy(bench: Bench, { id, token }: BenchSandbox): Target {
  return {
    origin: bench.world.server.url,
    headers: { 'e2b-sandbox-id': id, 'e2b-sandbox-port': String(ENVD_PORT), 'x-access-token': token },
  };
}

/** The guest's own address is that of its slot; the server's log is not asked, the records of slots are. */
async function direct(bench: Bench, { id, token }: BenchSandbox): Promise<Target> {
  const database = new DatabaseSync(`${bench.world.server.home}/state.db`, { readOnly: true });
  const row = database.prepare('SELECT run_json FROM sandboxes WHERE id = ?').get(id);
  database.close();
  const { slot } = JSON.parse(row?.run_json as string) as { slot: { hostAddress: string } };
  return { origin: `http://${slot.hostAddress}:${ENVD_PORT}`, headers: { 'x-access-token': token } };
}

/** A command from request to the end of its answer: Connect with JSON, as the SDK sends it. */
async function exec(agent: Agent, { origin, headers }: Target): Promise<void> {
  const message = Buffer.from(JSON.stringify({ process: { cmd: '/bin/true' } }));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  const { body, statusCode } = await agent.request({
    origin,
    path: '/process.Process/Start',
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/connect+json', 'connect-protocol-version': '1' },
    body: Buffer.concat([head, message]),
  });
  const text = await body.text();
  if (statusCode !== 200 || !text.includes('exited')) throw new Error(`exec: ${statusCode} ${text}`);
}

export async function execRoundTrip(bench: Bench): Promise<Result[]> {
  const sandbox = await bench.create();
  const agent = new Agent();
  try {
    const [proxied, bare] = [throughProxy(bench, sandbox), await direct(bench, sandbox)];
    const once = async (target: Target) => (await timed(() => exec(agent, target))).ms;
    const figures = await alternate(
      ROUND_TRIPS,
      () => once(proxied),
      () => once(bare),
    );
    return [
      {
        name: 'exec round trip on an open connection',
        ...figures,
        unit: 'ms',
        goal: { of: 'ratio', limit: 1.3, kind: 'at most' },
      },
    ];
  } finally {
    await agent.close();
    await bench.kill(sandbox);
  }
}

/** MB/s of a download that is read and thrown away. */
async function download(agent: Agent, { origin, headers }: Target, path: string): Promise<number> {
  let bytes = 0;
  const { ms } = await timed(async () => {
    const { body, statusCode } = await agent.request({ origin, path, method: 'GET', headers });
    if (statusCode !== 200) throw new Error(`download: ${statusCode} ${await body.text()}`);
    for await (const chunk of body) bytes += (chunk as Buffer).length;
  });
  return bytes / 1e6 / (ms / 1000);
}

export async function proxyThroughput(bench: Bench): Promise<Result[]> {
  return [await fromGuest(bench), await fromHost()];
}

async function fromGuest(bench: Bench): Promise<Result> {
  const sandbox = await bench.create();
  const agent = new Agent();
  try {
    await using guest = bench.guestOf(sandbox);
    const made = await guest.processes.start({
      cmd: '/bin/sh',
      args: ['-c', `head -c ${GUEST_FILE_MB}M /dev/zero > /root/big`],
    });
    await made.exit;
    const [proxied, bare] = [throughProxy(bench, sandbox), await direct(bench, sandbox)];
    const path = '/files?path=/root/big';
    const figures = await alternate(
      DOWNLOADS,
      () => download(agent, proxied, path),
      () => download(agent, bare, path),
    );
    return {
      name: 'proxy throughput, a file of a guest',
      ...figures,
      unit: 'MB/s',
      goal: { of: 'ratio', limit: 0.6, kind: 'at least' },
    };
  } finally {
    await agent.close();
    await bench.kill(sandbox);
  }
}

const hostStream = () => {
  const piece = Buffer.alloc(1 << 20);
  return createHttpServer((_request, response) => {
    response.setHeader('content-length', HOST_STREAM_MB << 20);
    let left = HOST_STREAM_MB;
    const write = () => {
      while (left > 0) {
        left -= 1;
        if (!response.write(piece)) return void response.once('drain', write);
      }
      response.end();
    };
    write();
  });
};

/** The least that a process between two others can do: bytes from one socket to the other. */
const bareRelay = (port: number) =>
  createTcpServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on('error', () => other.destroy());
      one.pipe(other);
    }
  });

async function portOf(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** An emulated guest is slower than any proxy; a server on the host shows what the proxy itself can do. */
async function fromHost(): Promise<Result> {
  const upstream = hostStream();
  const port = await portOf(upstream);
  const relay = bareRelay(port);
  const relayPort = await portOf(relay);
  const listener = createListener({
    routes: {
      route: () => ({ kind: 'running', address: '127.0.0.1', secure: false }),
      wake: () => Promise.resolve(),
    },
    control: (_request, response) => void response.end(),
    isApiKey: () => true,
    domains: [],
    logger: silentLogger,
  });
  const { port: proxyPort } = await listener.listen({ host: '127.0.0.1', port: 0 });
  const agent = new Agent();
  try {
    const headers = { 'e2b-sandbox-id': 'ibench', 'e2b-sandbox-port': String(port) };
    const figures = await alternate(
      DOWNLOADS,
      () => download(agent, { origin: `http://127.0.0.1:${proxyPort}`, headers }, '/'),
      () => download(agent, { origin: `http://127.0.0.1:${relayPort}`, headers: {} }, '/'),
    );
    return {
      name: 'proxy throughput, a server on the host (floor: a bare TCP relay)',
      ...figures,
      unit: 'MB/s',
      goal: { of: 'ratio', limit: 0.6, kind: 'at least' },
    };
  } finally {
    await agent.close();
    await listener.close();
    relay.close();
    upstream.closeAllConnections();
    upstream.close();
  }
}
