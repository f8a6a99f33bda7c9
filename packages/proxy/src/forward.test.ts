import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { PassThrough } from 'node:stream';
import { buffer, json, text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { addressOf, DOMAIN, SANDBOX, World } from './testing/world.ts';

const closed = async (world: World) => {
  const port = await world.serve((_request, response) => void response.end());
  await world[Symbol.asyncDispose]();
  return port;
};

test('method, path, headers and body arrive, and the answer comes back', async () => {
  await using world = await World.open();
  const body = randomBytes(3_000_000);
  const port = await world.serve(async (request, response) => {
    const received = createHash('sha256')
      .update(await buffer(request))
      .digest('hex');
    response.writeHead(418, { 'set-cookie': ['a=1', 'b=2'], 'x-received': received, connection: 'close' });
    response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers }));
  });
  const answer = await world.request(port, { method: 'PUT', path: '/a%20b?c=d', headers: { 'x-mine': 'yes' }, body });
  assert.equal(answer.statusCode, 418);
  assert.deepEqual(answer.headers['set-cookie'], ['a=1', 'b=2']);
  assert.equal(answer.headers['x-received'], createHash('sha256').update(body).digest('hex'));
  const seen = (await answer.body.json()) as { method: string; url: string; headers: Record<string, string> };
  assert.deepEqual([seen.method, seen.url, seen.headers['x-mine']], ['PUT', '/a%20b?c=d', 'yes']);
  assert.equal(seen.headers.host, `127.0.0.1:${world.port}`);
  assert.equal(seen.headers['content-length'], '3000000');
  assert.ok(!Object.keys(seen.headers).some((name) => name.startsWith('e2b-')));
});

test('a host name of the sandbox leads there, and any other name to the API', async () => {
  await using world = await World.open();
  const port = await world.serve((request, response) => void response.end(`sandbox ${request.headers.host}`));
  const ask = async (host: string) => {
    const answer = await world.raw(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    return answer.slice(answer.indexOf('\r\n\r\n') + 4);
  };
  const name = `${port}-${SANDBOX}.${DOMAIN}`;
  assert.match(await ask(name), new RegExp(`sandbox ${name}`));
  assert.match(await ask(DOMAIN), /control/);
  assert.match(await ask(`${port}-${SANDBOX}.elsewhere.test`), /control/);
});

test('request and answer are streamed at the same time', async () => {
  await using world = await World.open();
  // Each piece is sent only once the one before has come back: whoever buffers waits for ever.
  const port = await world.serve((request, response) => void request.pipe(response));
  const sent = new PassThrough();
  sent.write('0');
  const { body } = await world.request(port, { method: 'POST', body: sent });
  let received = '';
  for await (const chunk of body) {
    received += chunk;
    if (received.length < 5) sent.write(String(received.length));
    else sent.end();
  }
  assert.equal(received, '01234');
});

test('the head of an answer comes before its first byte', async () => {
  await using world = await World.open();
  const port = await world.serve((_request, response) => response.writeHead(200).flushHeaders());
  const { statusCode, body } = await world.request(port);
  assert.equal(statusCode, 200);
  body.on('error', () => {});
  body.destroy();
});

test('a client that reads slowly holds up the sandbox, not the memory of the proxy', async () => {
  await using world = await World.open();
  const total = 200 << 20;
  let sent = 0;
  const port = await world.serve((_request, response) => {
    const piece = Buffer.alloc(1 << 20);
    const write = () => {
      while (sent < total) {
        sent += piece.length;
        if (!response.write(piece)) return void response.once('drain', write);
      }
      response.end();
    };
    write();
  });
  const { body } = await world.request(port);
  const iterator = body[Symbol.asyncIterator]();
  let received = ((await iterator.next()).value as Buffer).length;
  await sleep(500);
  assert.ok(sent < 40 << 20, `${sent} bytes were sent although nobody read them`);
  for (;;) {
    const { value, done } = await iterator.next();
    if (done) break;
    received += (value as Buffer).length;
  }
  assert.equal(received, total);
});

test('an upload is held up by a sandbox that reads slowly', async () => {
  await using world = await World.open();
  const proceed = Promise.withResolvers<void>();
  let received = 0;
  const port = await world.serve(async (request, response) => {
    await proceed.promise;
    for await (const chunk of request) received += (chunk as Buffer).length;
    response.end();
  });
  const total = 200 << 20;
  let made = 0;
  async function* pieces() {
    for (; made < total; made += 1 << 20) yield Buffer.alloc(1 << 20);
  }
  const answer = world.request(port, { method: 'POST', body: pieces() as never });
  await sleep(500);
  assert.ok(made < 60 << 20, `${made} bytes were taken although nobody read them`);
  proceed.resolve();
  await (await answer).body.dump();
  assert.equal(received, total);
});

test('a client that goes away ends the request in the sandbox', async () => {
  await using world = await World.open();
  const ended = Promise.withResolvers<void>();
  const port = await world.serve((request: IncomingMessage, response) => {
    response.write('first');
    request.once('close', () => ended.resolve());
  });
  const { body } = await world.request(port);
  body.on('error', () => {});
  await once(body, 'readable');
  body.destroy();
  await ended.promise;
});

test('half an answer does not look like a whole one', async () => {
  await using world = await World.open();
  for (const head of ['Content-Length: 100', 'Transfer-Encoding: chunked']) {
    const dying = createTcpServer((socket) => {
      socket.once('data', () => socket.end(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n5\r\nhello\r\n`));
    });
    const port = await world.serve(dying);
    const { statusCode, body } = await world.request(port);
    assert.equal(statusCode, 200);
    await assert.rejects(body.text());
  }
});

test('HEAD, 204 and 304 have no body, and the connection is of use afterwards', async () => {
  await using world = await World.open();
  const port = await world.serve((request, response) => {
    response.statusCode = Number(request.url?.slice(1));
    if (request.method === 'HEAD') response.setHeader('content-length', 1000);
    response.end();
  });
  for (const [method, path] of [
    ['HEAD', '/200'],
    ['GET', '/204'],
    ['GET', '/304'],
    ['GET', '/200'],
  ] as const) {
    // biome-ignore format: a table
    const { statusCode, body } = await world.request(port, { method, path });
    assert.equal(statusCode, Number(path.slice(1)));
    assert.equal((await body.text()).length, 0);
  }
});

test('an answer before the end of the request reaches the client', async () => {
  await using world = await World.open();
  const port = await world.serve((_request, response) => {
    response.writeHead(413, { connection: 'close' });
    response.end('too large');
  });
  const endless = new PassThrough();
  endless.write(Buffer.alloc(1000));
  const { statusCode, body } = await world.request(port, { method: 'POST', body: endless });
  assert.equal(statusCode, 413);
  assert.equal(await body.text(), 'too large');
  endless.destroy();
});

test('what cannot be reached is blamed on the port, the sandbox or the address', async () => {
  const port = await closed(await World.open());
  await using world = await World.open();
  const refusalOf = async (options: { headers?: Record<string, string>; path?: string } = {}) => {
    const answer = await world.request(port, options);
    return { status: answer.statusCode, ...((await json(answer.body)) as object) };
  };
  assert.partialDeepStrictEqual(await refusalOf(), {
    status: 502,
    error_code: 'port_closed',
    sandboxId: SANDBOX,
    port,
    message: 'The sandbox is running but port is not open',
  });
  assert.partialDeepStrictEqual(await refusalOf({ headers: { 'e2b-sandbox-id': 'inone' } }), {
    status: 502,
    error_code: 'sandbox_not_found',
    sandboxId: 'inone',
    message: 'The sandbox was not found',
  });
  assert.partialDeepStrictEqual(await refusalOf({ headers: { 'e2b-sandbox-port': '0' } }), {
    status: 400,
    error_code: 'bad_request',
  });
  const silent = createTcpServer((socket) => socket.destroy());
  const answer = await world.request(await world.serve(silent));
  assert.equal(answer.statusCode, 502);
  assert.partialDeepStrictEqual(await answer.body.json(), { error_code: 'guest_unreachable' });
});

test('forget cuts what is under way, and the next request is made anew', async () => {
  await using world = await World.open();
  const port = await world.serve((_request, response) => void response.write('first'));
  const { body } = await world.request(port);
  await once(body, 'readable');
  world.listener.forget(SANDBOX);
  await assert.rejects(text(body));
  world.listener.forget(SANDBOX);
  const again = await world.request(port);
  assert.equal(again.statusCode, 200);
  again.body.on('error', () => {});
});

test('connections to a sandbox are used again', async () => {
  await using world = await World.open();
  const sockets = new Set<unknown>();
  const port = await world.serve((request, response) => {
    sockets.add(request.socket);
    response.end('x');
  });
  for (let count = 0; count < 20; count += 1) await (await world.request(port)).body.text();
  assert.equal(sockets.size, 1);
});

const SMUGGLED: Record<string, string> = {
  'two lengths': 'Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello',
  'a length and chunks': 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'chunks that are none': 'Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n',
  'an encoding nobody knows': 'Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n',
  'a bare line feed': 'X-A: b\nX-C: d\r\nContent-Length: 0\r\n\r\n',
  'a space before the colon': 'Content-Length : 5\r\n\r\nhello',
};
for (const [name, rest] of Object.entries(SMUGGLED)) {
  test(`smuggling by ${name} is refused`, async () => {
    await using world = await World.open();
    const seen: string[] = [];
    const port = await world.serve(async (request, response) => {
      await buffer(request).then(() => seen.push(`${request.method} ${request.url}`), () => {}); // biome-ignore format: one step
      response.end();
    });
    const head = Object.entries(addressOf(port)).map(([key, value]) => `${key}: ${value}\r\n`);
    const answer = await world.raw(`POST / HTTP/1.1\r\nHost: x\r\n${head.join('')}Connection: close\r\n${rest}`);
    assert.doesNotMatch(answer, /^HTTP\/1\.1 2/);
    assert.deepEqual(seen, []);
  });
}
