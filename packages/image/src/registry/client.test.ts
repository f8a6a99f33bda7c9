import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type FileHandle, mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { AenvError } from '@aenv/std';
import { parseReference, type RegistryReference } from '../reference.ts';
import { RegistryClient, type RegistryClientOptions } from './client.ts';

const BLOB = randomBytes(300_000);
const DIGEST = `sha256:${createHash('sha256').update(BLOB).digest('hex')}`;

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

interface Fake {
  host: string;
  /** `METHOD path` with the headers that matter here. */
  requests: { url: string; range?: string; authorization?: string }[];
}

/** A registry that misbehaves as `handler` says. */
async function fakeRegistry(t: TestContext, handler: Handler): Promise<Fake> {
  const requests: Fake['requests'] = [];
  const server = createServer((request, response) => {
    const { range, authorization } = request.headers;
    requests.push({ url: request.url ?? '', range, authorization });
    handler(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

function client(t: TestContext, host: string, options: Partial<RegistryClientOptions> = {}): RegistryClient {
  const made = new RegistryClient(parseReference(`${host}/team/app:1`) as RegistryReference, {
    insecureRegistries: [],
    ...options,
  });
  t.after(() => made.close());
  return made;
}

/** Downloads the blob into a file that holds `before` already. */
async function download(t: TestContext, from: RegistryClient, before: Buffer = Buffer.alloc(0)): Promise<Buffer> {
  const directory = await mkdtemp(join(tmpdir(), 'aenv-client-'));
  t.after(() => rm(directory, { recursive: true }));
  const path = join(directory, 'blob');
  await using file: FileHandle = await open(path, 'w+');
  await file.write(before);
  const seen: number[] = [];
  const transfer = { digest: DIGEST, size: BLOB.length, onBytes: (completed: number) => seen.push(completed) };
  await from.blobToFile(transfer, file, before.length);
  assert.equal(seen[0], before.length);
  assert.equal(seen.at(-1), BLOB.length);
  return readFile(path);
}

const withCode =
  (code: string, message = /./) =>
  (error: unknown) =>
    error instanceof AenvError && error.code === code && message.test(error.message);

/** Serves the blob from where the range says, but breaks the connection after `limit` bytes. */
function serveUpTo(limit: number): Handler {
  return (request, response) => {
    const start = Number(/bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
    const headers: Record<string, string | number> = { 'content-length': BLOB.length - start };
    if (start > 0) headers['content-range'] = `bytes ${start}-${BLOB.length - 1}/${BLOB.length}`;
    response.writeHead(start > 0 ? 206 : 200, headers);
    const part = BLOB.subarray(start, start + limit);
    response.write(part, () => {
      if (start + part.length === BLOB.length) response.end();
      else setTimeout(() => response.destroy(), 20);
    });
  };
}

test('a transfer that breaks off is continued where it stopped', async (t) => {
  const { host, requests } = await fakeRegistry(t, serveUpTo(120_000));
  assert.ok((await download(t, client(t, host))).equals(BLOB));
  assert.deepEqual(
    requests.map(({ range }) => range),
    [undefined, 'bytes=120000-', 'bytes=240000-'],
  );
});

test('what is on the disk already is not asked for again', async (t) => {
  const { host, requests } = await fakeRegistry(t, serveUpTo(BLOB.length));
  assert.ok((await download(t, client(t, host), BLOB.subarray(0, 1000))).equals(BLOB));
  assert.deepEqual(
    requests.map(({ range }) => range),
    ['bytes=1000-'],
  );
});

test('a server that ignores ranges is read from the start', async (t) => {
  const { host } = await fakeRegistry(t, (_request, response) => response.end(BLOB));
  assert.ok((await download(t, client(t, host), Buffer.alloc(5000, 1))).equals(BLOB));
});

test('a server that sends another range is refused', async (t) => {
  const { host } = await fakeRegistry(t, (_request, response) => {
    response.writeHead(206, { 'content-range': `bytes 0-9/${BLOB.length}` });
    response.end(BLOB.subarray(0, 10));
  });
  await assert.rejects(download(t, client(t, host), Buffer.alloc(10)), withCode('registry_unavailable', /range/));
});

test('a registry that dies and stays dead', async (t) => {
  let alive = true;
  const { host } = await fakeRegistry(t, (request, response) => {
    if (alive) serveUpTo(1000)(request, response);
    else request.socket.destroy();
    alive = false;
  });
  await assert.rejects(download(t, client(t, host)), withCode('registry_unavailable'));
});

test('more bytes than announced are not written, with and without a length', async (t) => {
  for (const headers of [{ 'content-length': BLOB.length + 1 }, {}]) {
    const { host } = await fakeRegistry(t, (_request, response) => {
      response.writeHead(200, headers);
      response.end(Buffer.concat([BLOB, Buffer.from('x')]));
    });
    await assert.rejects(download(t, client(t, host)), withCode('image_invalid', /more than/));
  }
});

test('a busy registry is given the time it asks for', async (t) => {
  let answers = 0;
  const { host } = await fakeRegistry(t, (_request, response) => {
    answers += 1;
    if (answers < 3) response.writeHead(answers === 1 ? 429 : 503, { 'retry-after': '0' }).end();
    else response.end('{}');
  });
  assert.equal((await client(t, host).manifest('1')).toString(), '{}');
});

test('a registry that stays busy is reported as such', async (t) => {
  const { host } = await fakeRegistry(t, (_request, response) => response.writeHead(429).end());
  await assert.rejects(client(t, host).manifest('1'), withCode('registry_unavailable', /no more requests/));
});

test('a manifest that is not what its digest says', async (t) => {
  const { host } = await fakeRegistry(t, (_request, response) => response.end('{"a":1}'));
  await assert.rejects(client(t, host).manifest(DIGEST), withCode('image_invalid', /digest/));
});

test('a manifest without end is not read to it', async (t) => {
  const { host } = await fakeRegistry(t, (_request, response) => {
    const more = () => {
      while (response.write(Buffer.alloc(1 << 16)));
    };
    response.on('drain', more).on('error', () => {});
    more();
  });
  await assert.rejects(client(t, host).manifest('1'), withCode('image_invalid', /more than/));
});

test('tokens: fetched once from the service named, with the credentials, and used', async (t) => {
  const { host, requests } = await fakeRegistry(t, (request, response) => {
    if (request.url?.startsWith('/token')) return response.end('{"access_token":"T0"}');
    if (request.headers.authorization === 'Bearer T0') return response.end('{}');
    const challenge = `Bearer realm="http://${request.headers.host}/token",service="s"`;
    return response.writeHead(401, { 'www-authenticate': challenge }).end();
  });
  const mine = client(t, host, { credentials: { username: 'u', password: 'p:ä' } });
  await mine.manifest('1');
  await mine.manifest('2');
  const basic = `Basic ${Buffer.from('u:p:ä').toString('base64')}`;
  assert.deepEqual(
    requests.map(({ url, authorization }) => [url, authorization]),
    [
      ['/v2/team/app/manifests/1', undefined],
      ['/token?service=s&scope=repository%3Ateam%2Fapp%3Apull', basic],
      ['/v2/team/app/manifests/1', 'Bearer T0'],
      ['/v2/team/app/manifests/2', 'Bearer T0'],
    ],
  );
});

test('a redirect to another host does not take the credentials along', async (t) => {
  const other = await fakeRegistry(t, (_request, response) => response.end(BLOB));
  const { host, requests } = await fakeRegistry(t, (request, response) => {
    if (!request.headers.authorization) response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
    else response.writeHead(307, { location: `http://${other.host}/elsewhere?signature=1` }).end();
  });
  const mine = client(t, host, { credentials: { username: 'u', password: 'p' } });
  assert.ok((await download(t, mine)).equals(BLOB));
  assert.ok(requests.at(-1)?.authorization);
  assert.deepEqual(other.requests, [{ url: '/elsewhere?signature=1', range: undefined, authorization: undefined }]);
});

test('redirects in circles, and to other schemes', async (t) => {
  for (const location of ['/v2/team/app/manifests/1', 'ftp://127.0.0.1/x', 'file:///etc/passwd', 'http://[']) {
    const { host } = await fakeRegistry(t, (_request, response) => response.writeHead(307, { location }).end());
    await assert.rejects(client(t, host).manifest('1'), withCode('registry_unavailable', /redirects/), location);
  }
});

test('a pull that is stopped ends at once, with the reason it was stopped for', async (t) => {
  const { host } = await fakeRegistry(t, (_request, response) => {
    response.writeHead(200);
    response.write('x');
  });
  const stop = new AbortController();
  const reason = new AenvError('shutting_down', 'stop');
  setTimeout(() => stop.abort(reason), 50);
  await assert.rejects(download(t, client(t, host, { signal: stop.signal })), reason);
});
