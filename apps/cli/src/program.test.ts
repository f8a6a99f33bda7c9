import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { probeCommand, templateNameOf } from './commands/pull.ts';
import { createProgram } from './program.ts';
import { API_KEY, type FakeServer, fakeSandbox, fakeTemplate, startFakeServer } from './testing/fake-server.ts';
import { AENV, type CliRun, cliEnvironment, runCli, runInTerminal, withHome } from './testing/run-cli.ts';
import { VERSION } from './version.ts';

const GOLDEN = new URL('./testing/help.txt', import.meta.url);

type Run = (...args: string[]) => Promise<CliRun>;

async function withServer(work: (run: Run, server: FakeServer, home: string) => Promise<void>): Promise<void> {
  await using server = await startFakeServer();
  await withHome((home) => work((...args) => runCli(args, { home, url: server.url }), server, home));
}

function helpOf(command: ReturnType<typeof createProgram>): string {
  const own = command.helpInformation();
  const visible = command.createHelp().visibleCommands(command);
  return [own, ...visible.filter((child) => child.name() !== 'help').map((child) => helpOf(child))].join('\n---\n');
}

test('the help of every command is as it was agreed (UPDATE_GOLDEN=1 writes it anew)', async () => {
  const text = helpOf(createProgram().configureOutput({ getOutHelpWidth: () => 100 }));
  if (process.env.UPDATE_GOLDEN) await writeFile(GOLDEN, text);
  assert.equal(text, await readFile(GOLDEN, 'utf8'));
});

test('the version is that of the package', async () => {
  const manifest = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'));
  assert.equal(VERSION, manifest.version);
});

test('list gives JSON to a pipe, all pages; a table where it is asked for', () =>
  withServer(async (run, server) => {
    for (const id of ['b1', 'b2', 'b3']) server.sandboxes.set(id, fakeSandbox(id));
    server.sandboxes.set('b4', fakeSandbox('b4', { state: 'paused', alias: 'red\x1b[31m' }));
    const { text } = await run('list');
    assert.deepEqual(
      JSON.parse(text).map(({ sandboxID }: { sandboxID: string }) => sandboxID),
      ['b1', 'b2', 'b3', 'b4'],
    );
    const paused = await run('ls', '--state', 'paused', '-o', 'table');
    assert.match(paused.text, /^SANDBOX ID {2}TEMPLATE\s+STATE/);
    assert.match(paused.text, /\nb4 +red�\[31m +paused/);
  }));

test('each command on a sandbox is its request', () =>
  withServer(async (run, server) => {
    server.sandboxes.set('box', fakeSandbox('box'));
    assert.equal((await run('pause', 'box', '--no-memory')).text, 'Paused box\n');
    assert.equal((await run('resume', 'box', '--timeout', '60')).text, 'Resumed box\n');
    assert.equal((await run('timeout', 'box', '90')).code, 0);
    assert.equal((await run('start', '-d', '--secure', 'base')).text, 'new1\n');
    assert.equal((await run('start', '-d', '--cold', '--cpu', '2', 'alpine')).text, 'new2\n');
    const removed = await run('rm', 'gone', 'box');
    assert.equal(removed.code, 1);
    assert.equal(removed.text, 'Deleted box\n');
    assert.deepEqual(server.requests, [
      'POST /sandboxes/box/pause {"memory":false}',
      'POST /sandboxes/box/connect {"timeout":60,"memory":true}',
      'POST /sandboxes/box/timeout {"timeout":90}',
      'POST /sandboxes {"templateID":"base","timeout":300,"secure":true}',
      'POST /sandboxes-cold {"image":"alpine","timeout":300,"secure":false,"cpuCount":2}',
      'DELETE /sandboxes/gone {}',
      'DELETE /sandboxes/box {}',
    ]);
  }));

test('copies of sandboxes: what was asked, and what is printed', () =>
  withServer(async (run, server) => {
    server.sandboxes.set('box', fakeSandbox('box'));
    assert.equal((await run('snapshot', 'create', 'box')).text, 'tmpl2:default\n');
    assert.equal((await run('snap', 'create', 'box', '--name', 'work:v1')).text, 'work:v1\n');
    assert.match((await run('snapshot', 'ls', '-o', 'table')).text, /\nwork:v1 +box +ready/);
    const lines = ['+ /new', '~ /other�[2J', '- /old', 'memory: 1.3 MiB of 256 differ', ''];
    assert.equal((await run('snapshot', 'diff', 'work:v1', 'work', '-o', 'table')).text, lines.join('\n'));
    const forked = await run('fork', 'box', '-n', '3', '--timeout', '60', '-o', 'table');
    assert.deepEqual([forked.code, forked.text], [1, 'new1\nnew2\n']);
    assert.match(forked.stderr, /a fork did not start: no room/);
    assert.equal((await run('rollback', 'box', 'work:v1')).text, 'box is work:v1 again\n');
    assert.deepEqual(server.requests, [
      'POST /sandboxes/box/snapshots {"memory":true}',
      'POST /sandboxes/box/snapshots {"memory":true,"name":"work:v1"}',
      'GET /snapshots {}',
      'GET /snapshots/diff {}',
      'POST /sandboxes/box/fork {"count":3,"timeout":60}',
      'POST /sandboxes/box/rollback {"snapshotID":"work:v1"}',
    ]);
  }));

test('failures: message, code, remedy; as JSON where it is asked for; 2 for wrong usage', () =>
  withServer(async (run) => {
    const missing = await run('start', '-d', 'missing');
    assert.equal(missing.code, 1);
    assert.equal(missing.stderr, "error: template 'missing' does not exist [template_not_found]\n  List them.\n");
    const asJson = await run('start', '-d', 'missing', '--output', 'json');
    assert.equal(JSON.parse(asJson.stderr).error.code, 'template_not_found');
    for (const args of [
      ['nonsense'],
      ['timeout', 'box', '-1'],
      ['timeout', 'box', '1.5'],
      ['start'],
      ['list', '-o', 'xml'],
    ]) {
      assert.equal((await run(...args)).code, 2, args.join(' '));
    }
    assert.match((await run('start', '-d', '--cpu', '2', 'base')).stderr, /go with --cold only/);
    assert.equal((await run('doctor')).code, 1);
  }));

test('no server: what to do', () =>
  withHome(async (home) => {
    const gone = await startFakeServer();
    await gone[Symbol.asyncDispose]();
    const { code, stderr } = await runCli(['list'], { home, url: gone.url });
    assert.equal(code, 1);
    assert.match(stderr, /nothing listens there \[server_unreachable\]\n {2}Start it/);
  }));

test('auth tries the key, saves it for its owner only, and others are refused', () =>
  withServer(async (_run, server, home) => {
    const file = join(home, '.config/aenv/credentials');
    const wrong = await runCli(['auth', '--url', server.url], { home, input: 'e2b_wrong\n' });
    assert.equal(wrong.code, 1);
    await assert.rejects(stat(file));
    const right = await runCli(['auth', '--url', server.url], { home, input: `${API_KEY}\n` });
    assert.equal(right.code, 0, right.stderr);
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    assert.equal((await runCli(['list'], { home })).text, '[]\n');
    await writeFile(join(home, 'open'), '');
    await import('node:fs/promises').then(({ chmod }) => chmod(file, 0o644));
    assert.match((await runCli(['list'], { home })).stderr, /other users may read it \[config_invalid\]/);
  }));

test('auth on a terminal does not show the key', () =>
  withServer(async (_run, server, home) => {
    const terminal = runInTerminal(['auth', '--url', server.url], { home });
    await new Promise<void>((resolve) => {
      const timer = setInterval(() => {
        if (!terminal.screen().includes('API key: ')) return;
        clearInterval(timer);
        resolve();
      }, 20);
    });
    terminal.type(`${API_KEY}\r`);
    assert.equal(await terminal.exited, 0, terminal.screen());
    assert.ok(!terminal.screen().includes(API_KEY));
  }));

test('the key of a saved server is not sent to another one', () =>
  withServer(async (_run, server, home) => {
    await mkdir(join(home, '.config/aenv'), { recursive: true });
    const text = `url = "http://127.0.0.1:1"\napi_key = "${API_KEY}"\n`;
    await writeFile(join(home, '.config/aenv/credentials'), text, { mode: 0o600 });
    const { code, stderr } = await runCli(['list'], { home, url: server.url, apiKey: '' });
    assert.equal(code, 1);
    assert.match(stderr, /there is no API key/);
    assert.deepEqual(server.requests, []);
  }));

test('pull follows the build; a failed one fails with its reason', () =>
  withServer(async (run, server) => {
    const entry = (message: string) => ({ timestamp: '2026-01-01T00:00:00.000Z', level: 'info' as const, message });
    const ready = { status: 'ready' as const, logEntries: [] };
    server.build = [
      { status: 'building', logEntries: [entry('booting')] },
      { ...ready, logEntries: [entry('done')] },
      ready,
    ];
    const good = await run('pull', 'registry.example/a/debian:12', '--probe', '8080');
    assert.equal(good.code, 0, good.stderr);
    assert.match(good.text, /^Template debian \(tmpl1\) is ready/);
    assert.match(good.stderr, /booting[\s\S]*done/);
    server.build = [{ status: 'error', logEntries: [], reason: { message: 'no such image', step: 'base' } }];
    const bad = await run('pull', 'x');
    assert.equal(bad.code, 1);
    assert.match(bad.stderr, /the build failed: no such image \(step base\) \[template_build_failed\]/);
  }));

test('templates are named after their image', () => {
  assert.equal(templateNameOf('localhost:5000/a/python:3.12@sha256:abc'), 'python');
  assert.equal(templateNameOf('oci:/images/debian:bookworm'), 'debian');
  assert.equal(templateNameOf('docker-archive:/tmp/my.app.tar'), 'my-app');
  assert.throws(() => templateNameOf('...'));
});

test('the probe of a port sees who listens', async (t) => {
  const { createServer } = await import('node:net');
  const server = createServer().listen(0, '127.0.0.1');
  t.after(() => server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  assert.ok(typeof address === 'object' && address);
  assert.equal(spawnSync('/bin/sh', ['-c', probeCommand(address.port)]).status, 0);
  assert.equal(spawnSync('/bin/sh', ['-c', probeCommand(1)]).status, 1);
});

test('logs come in order, each once', () =>
  withServer(async (run, server) => {
    server.sandboxes.set('box', fakeSandbox('box'));
    for (const message of ['started', 'paused']) {
      server.logs.push({ timestamp: '2026-01-01T00:00:00.000Z', level: 'info', message, fields: {} });
    }
    const { text } = await run('logs', 'box', '-o', 'table');
    assert.equal(text.match(/started|paused/g)?.join(), 'started,paused');
  }));

test('completion offers commands, options, and what the server has', () =>
  withServer(async (run, server) => {
    server.sandboxes.set('box', fakeSandbox('box'));
    server.templates.set('tmpl1', fakeTemplate('tmpl1', 'base'));
    assert.match((await run('completion', 'bash')).text, /complete .*aenv/);
    assert.match((await run('complete', '--', 'pa')).text, /^pause\t/m);
    assert.match((await run('complete', '--', 'pause', '')).text, /^box\t/m);
    assert.match((await run('complete', '--', 'template', 'rm', '')).text, /^base\t/m);
    assert.match((await run('complete', '--', 'list', '--st')).text, /^--state\t/m);
  }));

test('whoever stops reading ends it without a word', () =>
  withHome(async (home) => {
    const script = '"$0" --help 2>stderr | head -n 1 >/dev/null; echo "$PIPESTATUS"; cat stderr';
    const { stdout } = spawnSync('bash', ['-c', script, AENV], { cwd: home, env: cliEnvironment({ home }) });
    assert.match(stdout.toString(), /^(0|141)\n$/);
  }));
