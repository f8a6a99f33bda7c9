import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { aenvdMissing, startAenvd } from '@aenv/guest/testing';
import { pollUntil } from '@aenv/std';
import { type FakeServer, fakeSandbox, startFakeServer } from '../testing/fake-server.ts';
import { type CliOptions, type CliRun, runCli, runInTerminal, withHome } from '../testing/run-cli.ts';

type Run = (args: string[], input?: string | Buffer) => Promise<CliRun>;

async function withSandbox(work: (run: Run, options: CliOptions, server: FakeServer) => Promise<void>): Promise<void> {
  await using daemon = await startAenvd();
  await using server = await startFakeServer(daemon.port);
  server.sandboxes.set('box', fakeSandbox('box'));
  await withHome(async (home) => {
    const options = { home, url: server.url };
    await work((args, input) => runCli(args, { ...options, input }), options, server);
  });
}

describe('aenv exec', { skip: aenvdMissing }, () => {
  test('keeps the streams apart and returns the exit code', () =>
    withSandbox(async (run) => {
      const { code, text, stderr } = await run(['exec', 'box', 'sh', '-c', 'echo out; echo err >&2; exit 7']);
      assert.deepEqual({ code, text, stderr }, { code: 7, text: 'out\n', stderr: 'err\n' });
    }));

  test('hands arguments over as they are, also those that look like ours', () =>
    withSandbox(async (run) => {
      const { text } = await run(['exec', 'box', 'printf', '[%s]', '--help', 'a b', '$HOME', '-u', '']);
      assert.equal(text, '[--help][a b][$HOME][-u][]');
    }));

  test('a "--" before the command is not part of it, one after it is', () =>
    withSandbox(async (run) => {
      for (const start of [['--'], []]) {
        const { text } = await run(['exec', 'box', ...start, 'printf', '[%s]', '--', '-n']);
        assert.equal(text, '[--][-n]');
      }
      assert.equal((await run(['exec', 'box', '--', 'echo', '--', 'x'])).text, '-- x\n');
      assert.equal((await run(['exec', 'box', '--'])).code, 2);
    }));

  test('passes binary input and output on unchanged', () =>
    withSandbox(async (run) => {
      const bytes = randomBytes(300_000);
      const { code, stdout } = await run(['exec', 'box', 'cat'], bytes);
      assert.equal(code, 0);
      assert.ok(stdout.equals(bytes));
    }));

  test('a command that reads no input ends all the same', () =>
    withSandbox(async (run) => {
      const { code } = await run(['exec', 'box', 'true'], randomBytes(2_000_000));
      assert.equal(code, 0);
    }));

  test('takes a directory', () =>
    withSandbox(async (run) => {
      assert.equal((await run(['exec', '--cwd', '/usr', 'box', 'pwd'])).text, '/usr\n');
      const { code, stderr } = await run(['exec', '-w', '/no/such', 'box', 'pwd']);
      assert.equal(code, 1);
      assert.match(stderr, /\/no\/such/);
    }));

  test('a command that does not exist: 127 and a message', () =>
    withSandbox(async (run) => {
      const { code, stderr } = await run(['exec', 'box', 'no-such-command']);
      assert.equal(code, 127);
      assert.match(stderr, /no-such-command/);
    }));

  test('a signalled command: 128 + signal', () =>
    withSandbox(async (run) => {
      assert.equal((await run(['exec', 'box', 'sh', '-c', 'kill -9 $$'])).code, 137);
    }));

  test('Ctrl-C ends the command in the sandbox', () =>
    withSandbox(async (_run, options) => {
      const script = 'trap "echo told; exit 9" TERM; echo ready; while :; do sleep 0.05; done';
      const terminal = runInTerminal(['exec', 'box', 'sh', '-c', script], options);
      await pollUntil('the command', () => terminal.screen().includes('ready') || undefined, {
        intervalMs: 20,
        timeoutMs: 10_000,
      });
      terminal.type('\x03');
      assert.equal(await terminal.exited, 9);
      assert.match(terminal.screen(), /told/);
    }));

  test('a secure sandbox is reached with its token', () =>
    withSandbox(async (run, _options, server) => {
      const init = { method: 'POST', body: '{"accessToken":"secret"}', headers: { 'e2b-sandbox-id': 'box' } };
      assert.equal((await fetch(`${server.url}/init`, init)).status, 204);
      const { code, stderr } = await run(['exec', 'box', 'true']);
      assert.equal(code, 1);
      assert.match(stderr, /\[unauthorized\]/);
      server.sandboxes.set('box', fakeSandbox('box', { envdAccessToken: 'secret' }));
      assert.equal((await run(['exec', 'box', 'true'])).code, 0);
    }));

  test('a paused sandbox is not woken; the message says how', () =>
    withSandbox(async (run, _options, server) => {
      server.sandboxes.set('box', fakeSandbox('box', { state: 'paused' }));
      const { code, stderr } = await run(['exec', 'box', 'true']);
      assert.equal(code, 1);
      assert.match(stderr, /is paused \[sandbox_paused\]\n {2}Resume it: aenv resume box/);
    }));
});
