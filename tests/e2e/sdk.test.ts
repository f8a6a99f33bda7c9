/** The unmodified `e2b` SDK against a server with real VMs. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandExitError, type FilesystemEvent, Sandbox, Template } from 'e2b';
import WebSocket from 'ws';
import { until } from './support/until.ts';
import { createWorld, type World } from './support/world.ts';

const ECHO_SOURCE = new URL('./guest/echo.go', import.meta.url).pathname;

let world: World;
let connection: World['connection'];
let sandbox: Sandbox;

before(async () => {
  world = await createWorld();
  connection = world.connection;
  await Template.build(Template().fromImage(world.image), 'debian', { ...connection, cpuCount: 1, memoryMB: 256 });
  sandbox = await Sandbox.create('debian', { ...connection, timeoutMs: 600_000 });
});

after(async () => {
  await world?.destroy();
});

const sha256 = (data: Uint8Array) => createHash('sha256').update(data).digest('hex');

describe('commands', () => {
  test('stdout, stderr and the exit code come back apart', async () => {
    const result = await sandbox.commands.run('echo out; echo err >&2');
    assert.deepEqual([result.stdout, result.stderr, result.exitCode], ['out\n', 'err\n', 0]);
    await assert.rejects(sandbox.commands.run('echo before; exit 7'), (error: unknown) => {
      assert.ok(error instanceof CommandExitError);
      assert.equal(error.exitCode, 7);
      assert.equal(error.stdout, 'before\n');
      return true;
    });
  });

  test('a command that does not exist ends with 127', async () => {
    await assert.rejects(sandbox.commands.run('no-such-program'), { exitCode: 127 });
  });

  test('variables, the directory and the user of a command are its own', async () => {
    const result = await sandbox.commands.run('echo $GREETING; pwd; id -un', {
      envs: { GREETING: 'hello there' },
      cwd: '/var',
      user: 'nobody',
    });
    assert.equal(result.stdout, 'hello there\n/var\nnobody\n');
  });

  test('a process in the background is listed, written to, and killed', async () => {
    const output: string[] = [];
    const handle = await sandbox.commands.run('cat', {
      background: true,
      stdin: true,
      onStdout: (data) => void output.push(data),
    });
    await sandbox.commands.sendStdin(handle.pid, 'first line\n');
    await until(() => output.join('') === 'first line\n');
    const listed = await sandbox.commands.list();
    assert.ok(listed.some(({ pid }) => pid === handle.pid));
    assert.equal(await handle.kill(), true);
    await assert.rejects(handle.wait());
    assert.ok(!(await sandbox.commands.list()).some(({ pid }) => pid === handle.pid));
  });

  test('a second client sees the output of a process that the first has left', async () => {
    const handle = await sandbox.commands.run('for i in 1 2 3 4 5 6; do echo $i; sleep 0.5; done', {
      background: true,
    });
    await handle.disconnect();
    const seen: string[] = [];
    const again = await sandbox.commands.connect(handle.pid, { onStdout: (data) => void seen.push(data) });
    const result = await again.wait();
    assert.equal(result.exitCode, 0);
    assert.match(seen.join(''), /6\n$/);
  });

  test('a terminal has a size, takes input and ends with its shell', async () => {
    const decoder = new TextDecoder();
    let text = '';
    const terminal = await sandbox.pty.create({
      cols: 97,
      rows: 31,
      onData: (data) => {
        text += decoder.decode(data, { stream: true });
      },
    });
    await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode('stty size\n'));
    await until(() => text.includes('31 97'));
    await sandbox.pty.resize(terminal.pid, { cols: 120, rows: 40 });
    await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode('stty size; exit\n'));
    await terminal.wait();
    assert.match(text, /40 120/);
  });
});

describe('files', () => {
  test('text is written, read, listed, renamed and removed', async () => {
    const written = await sandbox.files.write('/root/notes/a.txt', 'ünïcode\n');
    assert.deepEqual([written.name, written.type, written.path], ['a.txt', 'file', '/root/notes/a.txt']);
    assert.equal(await sandbox.files.read('/root/notes/a.txt'), 'ünïcode\n');
    assert.deepEqual(
      (await sandbox.files.list('/root/notes')).map(({ name }) => name),
      ['a.txt'],
    );
    await sandbox.files.rename('/root/notes/a.txt', '/root/notes/b.txt');
    assert.equal(await sandbox.files.exists('/root/notes/a.txt'), false);
    const info = await sandbox.files.getInfo('/root/notes/b.txt');
    assert.equal(info.size, Buffer.byteLength('ünïcode\n'));
    await sandbox.files.remove('/root/notes');
    assert.equal(await sandbox.files.exists('/root/notes'), false);
  });

  for (const [name, size] of [
    ['0 B', 0],
    ['1 B', 1],
    ['64 KiB + 1', 65_537],
    ['10 MB', 10_000_000],
    ['100 MB', 100_000_000],
  ] as const) {
    test(`${name} of random bytes come back exactly`, async () => {
      const data = randomBytes(size);
      await sandbox.files.write('/root/blob', new Blob([data]), { requestTimeoutMs: 600_000 });
      const { stdout } = await sandbox.commands.run('sha256sum /root/blob', { timeoutMs: 300_000 });
      assert.equal(stdout.split(' ')[0], sha256(data));
      const back = await sandbox.files.read('/root/blob', { format: 'bytes', requestTimeoutMs: 600_000 });
      assert.equal(sha256(back), sha256(data));
      await sandbox.files.remove('/root/blob');
    });
  }

  test('a watched directory reports what happens in it', async () => {
    await sandbox.files.makeDir('/root/watched');
    const events: FilesystemEvent[] = [];
    const watch = await sandbox.files.watchDir('/root/watched', (event) => void events.push(event));
    await sandbox.files.write('/root/watched/new.txt', 'x');
    await until(() => events.some(({ name, type }) => name === 'new.txt' && type === 'write'));
    await watch.stop();
  });

  test('what does not exist is an error of its own', async () => {
    await assert.rejects(sandbox.files.read('/no/such/file'), { name: 'FileNotFoundError' });
  });
});

describe('what a sandbox serves', () => {
  let host: string;

  before(async () => {
    const directory = await mkdtemp(join(tmpdir(), 'aenv-echo-'));
    const binary = join(directory, 'echo');
    execFileSync('go', ['build', '-trimpath', '-ldflags=-s -w', '-o', binary, ECHO_SOURCE], {
      env: { ...process.env, CGO_ENABLED: '0' },
    });
    await sandbox.files.write('/usr/local/bin/echo-server', new Blob([await readFile(binary)]));
    await rm(directory, { recursive: true });
    await sandbox.commands.run('chmod +x /usr/local/bin/echo-server');
    await sandbox.commands.run('echo-server :8080', { background: true, timeoutMs: 0 });
    host = sandbox.getHost(8080);
    await until(async () => (await request('/hello')).status === 200);
  });

  function request(path: string, init: RequestInit = {}): Promise<Response> {
    // The name resolves nowhere here; the header does what DNS would.
    return fetch(`${world.server.url}${path}`, {
      ...init,
      headers: {
        ...(init.headers as Record<string, string>),
        'E2b-Sandbox-Id': sandbox.sandboxId,
        'E2b-Sandbox-Port': '8080',
      },
    });
  }

  test('HTTP arrives with its path, and the body comes back', async () => {
    assert.match(await (await request('/hello?x=1')).text(), /hello from GET \/hello\?x=1/);
    const body = randomBytes(1_000_000);
    const echoed = await request('/echo', { method: 'POST', body });
    assert.equal(sha256(new Uint8Array(await echoed.arrayBuffer())), sha256(body));
  });

  test('server-sent events arrive one by one', async () => {
    const response = await request('/events');
    const times: number[] = [];
    for await (const _ of response.body ?? []) times.push(performance.now());
    assert.ok(times.length >= 3, 'the events came in one piece');
  });

  test('a WebSocket echoes text and bytes', async () => {
    const { port } = new URL(world.server.url);
    const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`, { headers: { Host: host } });
    await once(socket, 'open');
    socket.send('hello');
    const [text] = (await once(socket, 'message')) as [Buffer];
    assert.equal(text.toString(), 'hello');
    const bytes = randomBytes(200_000);
    socket.send(bytes);
    const [data] = (await once(socket, 'message')) as [Buffer];
    assert.deepEqual(data, bytes);
    socket.close();
    await once(socket, 'close');
  });

  test('a port on which nothing listens is said to be closed', async () => {
    const response = await fetch(`${world.server.url}/`, {
      headers: { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '9999' },
    });
    assert.equal(response.status, 502);
    const { error_code } = (await response.json()) as { error_code: string };
    assert.equal(error_code, 'port_closed');
  });
});

/** Far ends of the connections that are established to the guest daemon. */
async function daemonClients(sandbox: Sandbox): Promise<string[]> {
  const { stdout } = await sandbox.commands.run('awk \'$2 ~ /:C33F$/ && $4 == "01" {print $3}\' /proc/net/tcp*');
  return stdout.split('\n').filter((line) => line !== '');
}

describe('the life of a sandbox', () => {
  test('it is listed by state and metadata, which may hold anything', async () => {
    const metadata = { run: 'grüße / 100 % & more', kind: 'listed' };
    const listed = await Sandbox.create('debian', { ...connection, metadata });
    try {
      const found = await Sandbox.list({ ...connection, query: { metadata, state: ['running'] } }).nextItems();
      assert.deepEqual(
        found.map(({ sandboxId }) => sandboxId),
        [listed.sandboxId],
      );
      assert.deepEqual(found[0]?.metadata, metadata);
      const none = await Sandbox.list({ ...connection, query: { metadata: { run: 'other' } } }).nextItems();
      assert.deepEqual(none, []);
    } finally {
      await listed.kill();
    }
  });

  test('after a pause a process goes on, the memory is intact and the clock is right', async () => {
    const paused = await Sandbox.create('debian', connection);
    try {
      await paused.commands.run('i=0; while true; do i=$((i+1)); echo $i > /dev/shm/count; sleep 0.1; done', {
        background: true,
        timeoutMs: 0,
      });
      await paused.files.write('/dev/shm/secret', 'in memory only');
      // Until the loop has begun there is no file.
      await until(async () => Number(await paused.files.read('/dev/shm/count').catch(() => '')) > 3);
      const clients = await daemonClients(paused);
      assert.ok(clients.length > 0);
      assert.equal(await paused.pause(), true);
      assert.equal((await Sandbox.getInfo(paused.sandboxId, connection)).state, 'paused');
      assert.equal(await paused.pause(), false);
      await sleep(2_000);

      const resumed = await Sandbox.connect(paused.sandboxId, connection);
      assert.equal(await resumed.files.read('/dev/shm/secret'), 'in memory only');
      const first = Number(await resumed.files.read('/dev/shm/count'));
      assert.ok(first > 3);
      await until(async () => Number(await resumed.files.read('/dev/shm/count')) > first);
      const { stdout } = await resumed.commands.run('date +%s.%N');
      assert.ok(Math.abs(Number(stdout) * 1000 - Date.now()) < 1_000, `the clock of the guest is off: ${stdout}`);
      const stillThere = (await daemonClients(resumed)).filter((client) => clients.includes(client));
      assert.deepEqual(stillThere, [], 'the guest holds connections from before the pause');
      // A second time, on top of the first.
      await resumed.files.write('/root/between', 'two pauses');
      assert.equal(await resumed.pause(), true);
      await resumed.connect();
      assert.equal(await resumed.files.read('/root/between'), 'two pauses');
      assert.equal(await resumed.files.read('/dev/shm/secret'), 'in memory only');
    } finally {
      await Sandbox.kill(paused.sandboxId, connection);
    }
  });

  test('a timeout ends it, or pauses it when asked to', async () => {
    const ends = await Sandbox.create('debian', { ...connection, timeoutMs: 3_000 });
    const pauses = await Sandbox.create('debian', {
      ...connection,
      timeoutMs: 3_000,
      lifecycle: { onTimeout: 'pause' },
    });
    try {
      await until(async () => (await Sandbox.getInfo(pauses.sandboxId, connection)).state === 'paused', 30_000);
      await until(async () => !(await ends.isRunning()), 30_000);
      // The SDK has a text of its own for a 404; ours says why the sandbox is gone.
      const { status, body } = await world.server.call('GET', `/sandboxes/${ends.sandboxId}`);
      assert.equal(status, 404);
      assert.match((body as { message: string }).message, /timeout/);
    } finally {
      await Sandbox.kill(pauses.sandboxId, connection);
    }
  });

  test('the timeout can be set anew', async () => {
    const kept = await Sandbox.create('debian', { ...connection, timeoutMs: 60_000 });
    try {
      await kept.setTimeout(500_000);
      const { endAt } = await kept.getInfo();
      assert.ok(Math.abs(endAt.getTime() - Date.now() - 500_000) < 10_000);
    } finally {
      await kept.kill();
    }
  });

  test('killed is gone: for the SDK, for the API and on the host', async () => {
    const killed = await Sandbox.create('debian', connection);
    assert.equal(await killed.kill(), true);
    assert.equal(await killed.isRunning(), false);
    assert.equal(await Sandbox.kill(killed.sandboxId, connection), false);
    const processes = execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' });
    assert.ok(!processes.includes(killed.sandboxId), 'a process of the sandbox is left');
  });

  test('a secure sandbox refuses whoever does not have its token', async () => {
    const path = '/process.Process/List';
    const headers = {
      'E2b-Sandbox-Id': sandbox.sandboxId,
      'E2b-Sandbox-Port': '49983',
      'Content-Type': 'application/json',
    };
    const refused = await fetch(`${world.server.url}${path}`, { method: 'POST', headers, body: '{}' });
    assert.equal(refused.status, 401);
    await sandbox.files.write('/root/signed.txt', 'signed');
    const url = new URL(await sandbox.downloadUrl('/root/signed.txt', { useSignatureExpiration: 60 }));
    const signed = await fetch(`${world.server.url}${url.pathname}${url.search}`, { headers });
    assert.equal(await signed.text(), 'signed');
    url.searchParams.delete('signature');
    const unsigned = await fetch(`${world.server.url}${url.pathname}${url.search}`, { headers });
    assert.equal(unsigned.status, 401);
  });

  test('two sandboxes of a template share nothing', async () => {
    const [one, two] = await Promise.all([Sandbox.create('debian', connection), Sandbox.create('debian', connection)]);
    try {
      await one.files.write('/root/mine', 'one');
      assert.equal(await two.files.exists('/root/mine'), false);
      const identity = async (of: Sandbox) =>
        (await of.commands.run('hostname; cat /proc/sys/kernel/random/uuid')).stdout;
      assert.notEqual(await identity(one), await identity(two));
    } finally {
      await Promise.all([one.kill(), two.kill()]);
    }
  });

  test('metrics tell what the guest uses', async () => {
    const [metric] = await sandbox.getMetrics();
    assert.ok(metric);
    assert.equal(metric.cpuCount, 1);
    assert.ok(metric.memUsed > 0 && metric.memUsed < metric.memTotal);
  });
});
