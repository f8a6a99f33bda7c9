import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { sleep } from '@aenv/std';
import fc from 'fast-check';
import { QmpClient } from './qmp.ts';
import { QmpLines, type QmpMessage } from './qmp-lines.ts';

const GREETING =
  '{"QMP": {"version": {"qemu": {"micro": 2, "minor": 0, "major": 10}, "package": "x"}, "capabilities": []}}\r\n';

/** What `bytes` mean when they come in pieces of `size`. */
function parse(bytes: Buffer, size: number): QmpMessage[] {
  const lines = new QmpLines();
  const messages: QmpMessage[] = [];
  for (let at = 0; at < bytes.length; at += size) messages.push(...lines.push(bytes.subarray(at, at + size)));
  return messages;
}

describe('lines', () => {
  test('each kind of message is recognised', () => {
    const text = `${GREETING}{"return": {"a": 1}, "id": 7}\r\n\r\n{"id": 8, "error": {"class": "GenericError", "desc": "no"}}\n{"event": "STOP", "timestamp": {}}\n`;
    assert.deepEqual(parse(Buffer.from(text), 1000), [
      { kind: 'greeting', version: '10.0.2' },
      { kind: 'return', id: 7, value: { a: 1 } },
      { kind: 'error', id: 8, errorClass: 'GenericError', description: 'no' },
      { kind: 'event', name: 'STOP', data: {} },
    ]);
  });

  test('how the stream is cut does not matter', () => {
    const answer = fc.record({ id: fc.nat(), return: fc.jsonValue() });
    fc.assert(
      fc.property(fc.array(answer), fc.integer({ min: 1, max: 50 }), (answers, size) => {
        const bytes = Buffer.from(answers.map((value) => `${JSON.stringify(value)}\r\n`).join(''));
        // Through JSON once, because it knows no -0.
        const expected = JSON.parse(JSON.stringify(answers)) as typeof answers;
        assert.deepEqual(
          parse(bytes, size),
          expected.map(({ id, return: value }) => ({ kind: 'return', id, value })),
        );
      }),
    );
  });

  test('anything else is an Error, never a wrong message', () => {
    const noise = fc.oneof(
      fc.string(),
      fc.json(),
      fc.jsonValue().map((value) => JSON.stringify(value)),
    );
    fc.assert(
      fc.property(noise, (text) => {
        let messages: QmpMessage[];
        try {
          messages = parse(Buffer.from(`${text}\n`), 7);
        } catch (error) {
          assert.ok(error instanceof Error && /^not (JSON|a QMP message)/.test(error.message));
          return;
        }
        for (const { kind } of messages) assert.ok(['greeting', 'return', 'error', 'event'].includes(kind));
        if (messages.length === 0) assert.equal(text.trim(), '');
      }),
    );
  });

  test('a line without end is given up', () => {
    const lines = new QmpLines();
    assert.throws(() => {
      for (let i = 0; i < 40; i++) lines.push(Buffer.alloc(1 << 16, 'x'));
    }, /a line without end/);
  });
});

describe('client', () => {
  let directory = '';
  let server: Server;
  const sockets = new Set<Socket>();
  const path = () => join(directory, 'qmp.sock');
  /** Answers of a pretended QEMU: text to send back for each command; undefined is silence. */
  let reply: (command: string, id: number, socket: Socket) => string | undefined;
  let greeting = GREETING;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'aenv-qmp-'));
    greeting = GREETING;
    reply = (_command, id) => JSON.stringify({ return: {}, id });
    server = createServer((socket) => {
      sockets.add(socket);
      socket.write(greeting);
      socket.on('error', () => {});
      socket.on('data', (chunk) => {
        for (const line of chunk.toString().split('\n').filter(Boolean)) {
          const { execute, id } = JSON.parse(line) as { execute: string; id: number };
          const text = execute === 'qmp_capabilities' ? JSON.stringify({ return: {}, id }) : reply(execute, id, socket);
          if (text !== undefined) socket.write(`${text}\n`);
        }
      });
    });
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
    server.close();
    await rm(directory, { recursive: true });
  });
  const listen = () => new Promise<void>((resolve) => server.listen(path(), resolve));
  const connected = async () => {
    await listen();
    return QmpClient.connect(path(), { timeoutMs: 2000 });
  };

  test('it waits for a QEMU that is not there yet', async () => {
    const connecting = QmpClient.connect(path(), { timeoutMs: 5000 });
    await sleep(20);
    await listen();
    const client = await connecting;
    assert.equal(client.version, '10.0.2');
    client.close();
  });

  test('nobody, silence and strangers are told apart', async () => {
    await assert.rejects(QmpClient.connect(path(), { timeoutMs: 30 }), { code: 'timeout', message: /did not open/ });
    greeting = '';
    await listen();
    await assert.rejects(QmpClient.connect(path(), { timeoutMs: 50 }), { code: 'timeout', message: /did not greet/ });
    greeting = 'SSH-2.0\n';
    await assert.rejects(QmpClient.connect(path(), { timeoutMs: 500 }), {
      code: 'vmm_failed',
      message: /not JSON: SSH/,
    });
    const reason = new Error('it died');
    await assert.rejects(QmpClient.connect(path(), { timeoutMs: 500, signal: AbortSignal.abort(reason) }), reason);
  });

  test('a path that no socket can have is refused with what to do', async () => {
    const long = `/${'x'.repeat(110)}`;
    await assert.rejects(QmpClient.connect(long, { timeoutMs: 100 }), { code: 'config_invalid', remedy: /AENV_HOME/ });
  });

  test('answers find their commands whatever their order, between events', async () => {
    const client = await connected();
    const waiting: number[] = [];
    reply = (command, id, socket) => {
      waiting.push(id);
      if (command === 'second') {
        socket.write('{"event": "STOP", "timestamp": {}}\n');
        for (const each of waiting.reverse()) socket.write(`${JSON.stringify({ return: each, id: each })}\n`);
      }
      return undefined;
    };
    const [first, second] = await Promise.all([client.execute('first'), client.execute('second')]);
    assert.equal(Number(second), Number(first) + 1);
    client.close();
  });

  test('a refusal carries the command and the reason', async () => {
    const client = await connected();
    reply = (_command, id) => JSON.stringify({ error: { class: 'GenericError', desc: 'no such device' }, id });
    await assert.rejects(client.execute('device_del'), { code: 'vmm_failed', message: 'device_del: no such device' });
    client.close();
  });

  test('a command without answer ends at its deadline, and its late answer changes nothing', async () => {
    const client = await connected();
    let late = () => {};
    reply = (_command, id, socket) => {
      late = () => void socket.write(`${JSON.stringify({ return: 'late', id })}\n`);
      return undefined;
    };
    await assert.rejects(client.execute('slow', {}, 20), { code: 'timeout', message: /did not answer slow/ });
    late();
    reply = (_command, id) => JSON.stringify({ return: 'mine', id });
    assert.equal(await client.execute('next'), 'mine');
    client.close();
  });

  test('a broken stream fails what waits and what comes', async () => {
    for (const broken of [(socket: Socket) => socket.destroy(), (socket: Socket) => socket.write('garbage\n')]) {
      const client = await (server.listening ? QmpClient.connect(path(), { timeoutMs: 2000 }) : connected());
      reply = (_command, _id, socket) => void broken(socket);
      await assert.rejects(client.execute('stop'), { code: 'vmm_failed' });
      await assert.rejects(client.execute('cont'), { code: 'vmm_failed' });
    }
  });
});
