import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { aenvdMissing, startAenvd } from '@aenv/guest/testing';
import { pollUntil } from '@aenv/std';
import { type FakeServer, fakeSandbox, startFakeServer } from './testing/fake-server.ts';
import { AENV, type CliOptions, runCli, runInTerminal, type TerminalRun, withHome } from './testing/run-cli.ts';

async function withSandbox(work: (options: CliOptions, server: FakeServer, kill: () => void) => Promise<void>) {
  await using daemon = await startAenvd();
  await using server = await startFakeServer(daemon.port);
  server.sandboxes.set('box', fakeSandbox('box'));
  await withHome((home) => work({ home, url: server.url }, server, () => void daemon.process.kill('SIGKILL')));
}

function appears(terminal: TerminalRun, text: RegExp): Promise<true> {
  const found = () => text.test(terminal.screen()) || undefined;
  return pollUntil(`${text} on the screen`, found, { intervalMs: 20, timeoutMs: 10_000 }).catch((error: Error) => {
    throw new Error(`${error.message}; the screen shows:\n${terminal.screen()}`);
  });
}

/** `$((…))` is what distinguishes the answer from the echo of the question. */
const marker = (name: string): [string, RegExp] => [`echo ${name}$((6*7))\r`, new RegExp(`${name}42`)];

describe('a shell in a sandbox', { skip: aenvdMissing }, () => {
  test('start: terminal size, resize, exit code of the shell', () =>
    withSandbox(async (options, server) => {
      const terminal = runInTerminal(['start', 'base', '--timeout', '60'], options);
      await appears(terminal, /Started new1/);
      const [question, answer] = marker('ready');
      terminal.type(question);
      await appears(terminal, answer);
      terminal.type('stty size\r');
      await appears(terminal, /\b25 90\b/);
      terminal.resize(70, 20);
      terminal.type('sleep 0.3; stty size\r');
      await appears(terminal, /\b20 70\b/);
      terminal.type('exit 3\r');
      assert.equal(await terminal.exited, 3);
      assert.ok(server.requests.includes('POST /sandboxes {"templateID":"base","timeout":60,"secure":false}'));
    }));

  test('connect resumes a paused sandbox; Ctrl-C goes to the shell, not to us', () =>
    withSandbox(async (options, server) => {
      server.sandboxes.set('box', fakeSandbox('box', { state: 'paused' }));
      const terminal = runInTerminal(['connect', 'box'], options);
      const [ready, isReady] = marker('ready');
      terminal.type(ready);
      await appears(terminal, isReady);
      terminal.type("sh -c 'echo sleeping$((1+1)); exec sleep 60'\r");
      await appears(terminal, /sleeping2/);
      terminal.type('\x03');
      const [alive, isAlive] = marker('alive');
      terminal.type(alive);
      await appears(terminal, isAlive);
      terminal.type('\x04');
      await terminal.exited;
      assert.equal(server.sandboxes.get('box')?.state, 'running');
    }));

  test('the terminal is as it was afterwards, also when the sandbox is lost', () =>
    withSandbox(async (options, _server, killDaemon) => {
      const script = `${AENV} cn box; echo "code:$?"; stty -a`;
      const terminal = runInTerminal(['-c', script], options, '/bin/sh');
      const [question, answer] = marker('ready');
      terminal.type(question);
      await appears(terminal, answer);
      killDaemon();
      await appears(terminal, /code:1/);
      await terminal.exited;
      assert.match(terminal.screen(), /\[guest_unreachable\]/);
      assert.match(terminal.screen(), /\sicanon\b/);
      assert.match(terminal.screen(), /\secho\b/);
    }));

  test('a signal that ends us restores the terminal first', () =>
    withSandbox(async (options) => {
      const script = `sh -c 'echo pid:$$; exec ${AENV} cn box'; echo "code:$?"; stty -a`;
      const terminal = runInTerminal(['-c', script], options, '/bin/sh');
      const [question, answer] = marker('ready');
      terminal.type(question);
      await appears(terminal, answer);
      process.kill(Number(/pid:(\d+)/.exec(terminal.screen())?.[1]), 'SIGTERM');
      await appears(terminal, /code:143/);
      await terminal.exited;
      assert.match(terminal.screen(), /\sicanon\b/);
    }));

  test('without a terminal it says what to do, and starts nothing', () =>
    withSandbox(async (options, server) => {
      const { code, stderr } = await runCli(['start', 'base'], options);
      assert.equal(code, 1);
      assert.match(stderr, /a shell needs a terminal/);
      assert.match(stderr, /Use -d/);
      assert.deepEqual(server.requests, []);
    }));
});
