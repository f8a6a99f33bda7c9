/** Against the real daemon, run as a process of this machine. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { AenvError, deferred, pollUntil, withDeadline } from '@aenv/std';
import { createGuestClient, type GuestClient } from './client.ts';
import { aenvdMissing, startAenvd } from './testing/aenvd.ts';

const sameUser = process.getuid?.() === 0 ? 'root' : undefined;

async function withGuest(work: (guest: GuestClient, port: number) => Promise<void>): Promise<void> {
  await using daemon = await startAenvd();
  await using guest = createGuestClient({ host: '127.0.0.1', port: daemon.port, initKey: 'k1', user: sameUser });
  await guest.waitHealthy(5000);
  await work(guest, daemon.port);
}

async function withDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'aenv-guest-'));
  try {
    await work(directory);
  } finally {
    await rm(directory, { recursive: true });
  }
}

const hasCode = (code: string) => (error: unknown) => error instanceof AenvError && error.code === code;

test('nobody there: guest_unreachable after the time that was given', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  assert.ok(typeof address === 'object' && address);
  await using guest = createGuestClient({ host: '127.0.0.1', port: address.port });
  const start = performance.now();
  await assert.rejects(guest.waitHealthy(300), hasCode('guest_unreachable'));
  assert.ok(performance.now() - start < 2000);
});

test('a daemon that takes connections and says nothing does not hold waitHealthy up', async () => {
  const server = createServer(() => {}).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert.ok(typeof address === 'object' && address);
  await using guest = createGuestClient({ host: '127.0.0.1', port: address.port });
  try {
    await assert.rejects(withDeadline(guest.waitHealthy(400), 3000, 'waitHealthy'), hasCode('guest_unreachable'));
  } finally {
    await guest.close();
    server.close();
  }
});

describe('the guest daemon', { skip: aenvdMissing }, () => {
  test('runs a command, its streams apart', () =>
    withGuest(async ({ processes }) => {
      const output = { stdout: '', stderr: '', pty: '' };
      const { pid, exit } = await processes.start({
        cmd: '/bin/sh',
        args: ['-c', 'echo out; echo err >&2; exit 4'],
        onOutput: (stream, bytes) => {
          output[stream] += Buffer.from(bytes).toString();
        },
      });
      assert.ok(pid > 0);
      assert.equal((await exit).exitCode, 4);
      assert.deepEqual(output, { stdout: 'out\n', stderr: 'err\n', pty: '' });
    }));

  test('passes input, its end, directory and variables', () =>
    withGuest(async ({ processes }) => {
      let text = '';
      const remote = await processes.start({
        cmd: '/bin/sh',
        args: ['-c', 'pwd; echo $GREETING; cat'],
        envs: { GREETING: 'hello' },
        cwd: '/usr',
        stdin: true,
        onOutput: (_stream, bytes) => {
          text += Buffer.from(bytes).toString();
        },
      });
      await remote.sendInput(Buffer.from('typed\n'));
      await remote.closeStdin();
      assert.equal((await remote.exit).exitCode, 0);
      assert.equal(text, '/usr\nhello\ntyped\n');
    }));

  test('a command that does not exist ends at once and says why', () =>
    withGuest(async ({ processes }) => {
      const exit = await (await processes.start({ cmd: 'no-such-command' })).exit;
      assert.equal(exit.exitCode, 127);
      assert.match(exit.error ?? '', /no-such-command/);
    }));

  test('lists processes by tag, lets others watch, kills the group', () =>
    withGuest(async ({ processes }) => {
      const first = await processes.start({ cmd: 'sleep', args: ['60'], tag: 'sleeper' });
      const [info] = (await processes.list()).filter(({ tag }) => tag === 'sleeper');
      assert.equal(info?.pid, first.pid);
      const watcher = await processes.connect('sleeper');
      assert.equal(watcher.pid, first.pid);
      assert.equal(await watcher.kill(), true);
      assert.equal((await first.exit).exitCode, 137);
      assert.equal((await watcher.exit).exitCode, 137);
      assert.equal(await first.kill(), false);
    }));

  test('a terminal has the size that was asked for, and changes it', () =>
    withGuest(async ({ processes }) => {
      let text = '';
      const shell = await processes.start({
        cmd: '/bin/sh',
        pty: { cols: 91, rows: 33 },
        onOutput: (_stream, bytes) => {
          text += Buffer.from(bytes).toString();
        },
      });
      await shell.sendInput(Buffer.from('stty size\n'));
      await pollUntil('the first size', () => text.includes('33 91') || undefined, { intervalMs: 10, timeoutMs: 5000 });
      await shell.resize({ cols: 100, rows: 40 });
      await shell.sendInput(Buffer.from('stty size; exit 5\n'));
      assert.equal((await shell.exit).exitCode, 5);
      assert.match(text, /40 100/);
    }));

  test('slow output handlers hold the command back and lose nothing', () =>
    withGuest(async ({ processes }) => {
      let bytes = 0;
      const { exit } = await processes.start({
        cmd: 'head',
        args: ['-c', '3000000', '/dev/zero'],
        onOutput: async (_stream, chunk) => {
          await new Promise((resolve) => setTimeout(resolve, 1));
          bytes += chunk.length;
        },
      });
      await exit;
      assert.equal(bytes, 3_000_000);
    }));

  test('aenvd dies: a running stream ends with guest_unreachable', async () => {
    await using daemon = await startAenvd();
    await using guest = createGuestClient({ host: '127.0.0.1', port: daemon.port, user: sameUser });
    const { exit } = await guest.processes.start({ cmd: 'sleep', args: ['2'] });
    daemon.process.kill('SIGKILL');
    await assert.rejects(exit, hasCode('guest_unreachable'));
  });

  test('streams end when the host drops them; only with its key', () =>
    withGuest(async (guest, port) => {
      await guest.init({ initKey: 'k1', envVars: { FROM_INIT: 'yes' } });
      const { exit, pid } = await guest.processes.start({ cmd: 'sleep', args: ['60'] });
      await using stranger = createGuestClient({ host: '127.0.0.1', port, initKey: 'other' });
      await assert.rejects(stranger.init({ dropStreams: true }), hasCode('unauthorized'));
      await assert.rejects(stranger.init({ initKey: 'mine' }), hasCode('unauthorized'));
      assert.equal(
        await Promise.race([exit.catch(() => 'dropped'), guest.init({}).then(() => 'streaming')]),
        'streaming',
      );
      await guest.init({ dropStreams: true });
      await assert.rejects(exit, AenvError);
      const again = await guest.processes.connect(pid);
      assert.equal(await again.kill(), true);
      await guest.sync();
    }));

  test('a secure guest wants its token', () =>
    withGuest(async (guest, port) => {
      await guest.init({ initKey: 'k1', accessToken: 'secret' });
      await assert.rejects(guest.processes.list(), hasCode('unauthorized'));
      await using holder = createGuestClient({ host: '127.0.0.1', port, accessToken: 'secret' });
      assert.deepEqual(await holder.processes.list(), []);
      assert.ok((await holder.metrics()).memTotal > 0);
    }));

  test('files: bytes, parents, list, move, remove', () =>
    withGuest(({ files }) =>
      withDirectory(async (directory) => {
        const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7) % 256));
        const path = join(directory, 'a/b/data');
        await files.write(path, Readable.from([bytes.subarray(0, 5), bytes.subarray(5)]));
        const { size, stream } = await files.read(path);
        assert.equal(size, bytes.length);
        assert.ok((await buffer(stream)).equals(bytes));
        const rest = await files.read(path, { offset: 299_990 });
        assert.ok((await buffer(rest.stream)).equals(bytes.subarray(299_990)));
        await files.write(join(directory, 'empty'), '');
        assert.equal(await files.readText(join(directory, 'empty')), '');
        assert.deepEqual(
          (await files.list(directory)).map(({ name, kind, size }) => [name, kind, kind === 'file' ? size : 0]),
          [
            ['a', 'directory', 0],
            ['empty', 'file', 0],
          ],
        );
        assert.equal((await files.move(path, join(directory, 'moved'))).name, 'moved');
        await files.remove(join(directory, 'moved'));
        await assert.rejects(files.stat(join(directory, 'moved')), hasCode('not_found'));
        await assert.rejects(files.read(join(directory, 'moved')), hasCode('not_found'));
        assert.equal(await files.makeDir(join(directory, 'a')), false);
      }),
    ));

  test('watches a directory until told to stop', () =>
    withGuest(({ files }) =>
      withDirectory(async (directory) => {
        const created = deferred<string>();
        const stop = new AbortController();
        const { done } = await files.watch(
          directory,
          ({ name, kind }) => {
            if (kind === 'create') created.resolve(name);
          },
          { signal: stop.signal },
        );
        await files.write(join(directory, 'new'), 'x');
        assert.equal(await withDeadline(created.promise, 5000, 'the event'), 'new');
        stop.abort();
        await done;
      }),
    ));
});
