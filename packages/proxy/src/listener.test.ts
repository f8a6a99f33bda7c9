import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect as connectHttp2, constants } from 'node:http2';
import { connect, createServer as createTcpServer } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type RawData, WebSocket, WebSocketServer } from 'ws';
import { API_KEY, addressOf, SANDBOX, World } from './testing/world.ts';

/** A server that sends every message back. */
async function echo(world: World): Promise<number> {
  const server = createServer();
  new WebSocketServer({ server }).on('connection', (socket, request) => {
    socket.send(`${request.url} ${request.headers['x-mine']} ${request.headers['e2b-sandbox-id']}`);
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
  return world.serve(server);
}

const nextMessage = async (socket: WebSocket): Promise<string> =>
  String(((await once(socket, 'message')) as [RawData])[0]);

test('a WebSocket passes text and bytes both ways, and its end', async () => {
  await using world = await World.open();
  const port = await echo(world);
  const socket = new WebSocket(`ws://127.0.0.1:${world.port}/proxy/chat?a=b`, {
    headers: { ...addressOf(port), 'x-mine': 'grün' },
  });
  assert.equal(await nextMessage(socket), '/chat?a=b grün undefined');
  socket.send('hello');
  assert.equal(await nextMessage(socket), 'hello');
  const bytes = Buffer.alloc(1_000_000, 7);
  socket.send(bytes);
  const [received] = (await once(socket, 'message')) as [Buffer];
  assert.ok(received.equals(bytes));
  socket.close(4001, 'enough');
  const [code] = await once(socket, 'close');
  assert.equal(code, 4001);
});

test('forget cuts a WebSocket', async () => {
  await using world = await World.open();
  const socket = new WebSocket(`ws://127.0.0.1:${world.port}/`, { headers: addressOf(await echo(world)) });
  await nextMessage(socket);
  const closed = once(socket, 'close');
  world.listener.forget(SANDBOX);
  const [code] = await closed;
  assert.equal(code, 1006);
});

test('an upgrade that leads nowhere is refused with a reason', async () => {
  await using world = await World.open();
  const gone = createTcpServer();
  const port = await world.serve(gone);
  gone.close();
  const answerTo = async (headers: Record<string, string>) => {
    const socket = new WebSocket(`ws://127.0.0.1:${world.port}/`, { headers });
    const [, response] = await once(socket, 'unexpected-response');
    const body = JSON.parse(await text(response)) as { error_code: string };
    return [response.statusCode, body.error_code];
  };
  assert.deepEqual(await answerTo(addressOf(port)), [502, 'port_closed']);
  assert.deepEqual(await answerTo({ ...addressOf(port), 'e2b-sandbox-id': 'inone' }), [502, 'sandbox_not_found']);
  assert.deepEqual(await answerTo({}), [400, 'bad_request']);
  assert.deepEqual(await answerTo({ 'e2b-sandbox-id': SANDBOX }), [400, 'bad_request']);
});

test('server-sent events arrive one by one', async () => {
  await using world = await World.open();
  let send = (_event: string): void => {};
  const port = await world.serve((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    send = (event) => void response.write(`data: ${event}\n\n`);
    response.flushHeaders();
  });
  const { body } = await world.request(port);
  const events = body[Symbol.asyncIterator]();
  for (const event of ['one', 'two', 'three']) {
    send(event);
    assert.equal(String((await events.next()).value), `data: ${event}\n\n`);
  }
  body.on('error', () => {});
  body.destroy();
});

test('HTTP/2 without TLS: many requests on one connection, streamed both ways, with trailers', async () => {
  await using world = await World.open();
  const port = await world.serve((request, response) => {
    response.writeHead(200, { trailer: 'x-sum' });
    request.pipe(response, { end: false });
    request.on('end', () => {
      response.addTrailers({ 'x-sum': 'done' });
      response.end();
    });
  });
  const session = connectHttp2(`http://127.0.0.1:${world.port}`);
  try {
    const roundTrip = async (word: string) => {
      const stream = session.request({ ':method': 'POST', ':path': '/proxy/x', ...addressOf(port) });
      const trailers = once(stream, 'trailers');
      stream.write(word);
      const [first] = (await once(stream, 'data')) as [Buffer];
      stream.end(word);
      const rest = await buffer(stream);
      return [Buffer.concat([first, rest]).toString(), (await trailers)[0]['x-sum']];
    };
    const words = ['a', 'b', 'c', 'd'];
    assert.deepEqual(
      await Promise.all(words.map(roundTrip)),
      words.map((word) => [word + word, 'done']),
    );
    const control = session.request({ ':path': '/' });
    assert.equal(await text(control), 'control');
    const refused = session.request({ ':path': '/', ...addressOf(1), 'e2b-sandbox-id': 'inone' });
    const [headers] = await once(refused, 'response');
    assert.equal(headers[':status'], 502);
    assert.match(await text(refused), /sandbox_not_found/);
  } finally {
    session.close();
  }
});

test('an HTTP/2 stream that the sandbox breaks off ends with an error, and the others go on', async () => {
  await using world = await World.open();
  const port = await world.serve((request, response) => {
    response.write('first');
    if (request.url === '/break') setTimeout(() => response.destroy(), 20);
    else setTimeout(() => response.end('last'), 100);
  });
  const session = connectHttp2(`http://127.0.0.1:${world.port}`);
  try {
    const ask = (path: string) => session.request({ ':path': path, ...addressOf(port) });
    const [broken, whole] = [ask('/break'), ask('/whole')];
    const end = once(broken, 'error').then(([error]) => error, (error: Error) => error); // biome-ignore format: one value
    broken.resume();
    assert.equal(await text(whole), 'firstlast');
    await end;
    assert.notEqual(broken.rstCode, constants.NGHTTP2_NO_ERROR);
  } finally {
    session.close();
  }
});

test('the protocol is told apart however the first bytes are cut', async () => {
  await using world = await World.open();
  for (const first of ['G', 'GE', 'P']) {
    const method = first === 'P' ? 'PUT' : 'GET';
    const request = `${method} / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`;
    const socket = connect(world.port, '127.0.0.1').setNoDelay(true);
    socket.write(first);
    await sleep(20);
    socket.write(request.slice(first.length));
    assert.match(await text(socket), /control$/);
  }
  const silent = connect(world.port, '127.0.0.1');
  silent.write('PR');
  silent.end();
  assert.equal(await text(silent), '');
});

test('bytes that are no protocol end the connection, not the server', async () => {
  await using world = await World.open();
  for (const bytes of [
    'PRI * nonsense\r\n\r\n',
    '\0\0\0\0\0',
    'GET\r\n\r\n',
    '\x16\x03\x01\x02\0\x01',
    `GET / HTTP/1.1\r\nX: ${'x'.repeat(100_000)}`,
  ]) {
    // biome-ignore format: a list
    await world.raw(bytes);
  }
  assert.equal(await (await world.request(1, { headers: { 'e2b-sandbox-id': 'inone' } })).body.text().then((body) => JSON.parse(body).error_code), 'sandbox_not_found'); // biome-ignore format: one question
});

test('what belongs to the host is not there for the outside, however it is written', async () => {
  await using world = await World.open();
  world.route = { kind: 'running', address: '127.0.0.1', secure: false };
  for (const path of ['/init', '//init', '/init/', '/./init', '/x/../init', '/%69nit', '/init?x', '/sync']) {
    // biome-ignore format: a list
    const { statusCode, body } = await world.request(49_983, { method: 'POST', path });
    assert.equal(statusCode, 404, path);
    await body.dump();
  }
  const port = await world.serve((request, response) => void response.end(request.url));
  assert.equal(await (await world.request(port, { path: '/init' })).body.text(), '/init');
});

test('a paused sandbox is woken once for all who ask, and by nobody when it may not be', async () => {
  await using world = await World.open();
  const port = await world.serve((_request, response) => void response.end('awake'));
  world.route = { kind: 'paused', autoResume: false };
  const asleep = await world.request(port);
  assert.equal(asleep.statusCode, 502);
  await asleep.body.dump();

  world.route = { kind: 'paused', autoResume: true };
  const waking = Promise.withResolvers<void>();
  world.wake = () => waking.promise;
  const answers = [1, 2, 3].map(async () => (await world.request(port)).body.text());
  await sleep(50);
  world.route = { kind: 'running', address: '127.0.0.1', secure: false };
  waking.resolve();
  assert.deepEqual(await Promise.all(answers), ['awake', 'awake', 'awake']);
});

test('a sandbox that cannot be woken says why', async () => {
  await using world = await World.open();
  world.route = { kind: 'paused', autoResume: true };
  world.wake = () => Promise.reject(new Error('the disk is gone'));
  const { statusCode, body } = await world.request(80);
  assert.equal(statusCode, 500);
  assert.match(await body.text(), /the disk is gone/);
});

test('only who may use the daemon may wake it', async () => {
  await using world = await World.open();
  world.route = { kind: 'paused', autoResume: true, envdAccessToken: 'token' };
  let woken = 0;
  world.wake = () => {
    woken += 1;
    return Promise.reject(new Error('woken'));
  };
  const statusOf = async (headers: Record<string, string>) => {
    const { statusCode, body } = await world.request(49_983, { headers });
    await body.dump();
    return statusCode;
  };
  assert.equal(await statusOf({}), 403);
  assert.equal(await statusOf({ 'x-access-token': 'tokeN' }), 403);
  assert.equal(await statusOf({ 'x-api-key': 'another' }), 403);
  assert.equal(woken, 0);
  assert.equal(await statusOf({ 'x-access-token': 'token' }), 500);
  assert.equal(await statusOf({ 'x-api-key': API_KEY }), 500);
  assert.equal(woken, 2);
});

test('an address that is taken, and one that is not ours', async () => {
  await using world = await World.open();
  await using other = await World.open();
  await other.listener.close();
  await assert.rejects(other.listener.listen({ host: '127.0.0.1', port: world.port }), { code: 'address_in_use' });
  await assert.rejects(other.listener.listen({ host: '203.0.113.1', port: 0 }), { code: 'config_invalid' });
});
