/** The CLI as a program against the real server and a real VM; its texts and failures: apps/cli. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { createWorld, type World } from './support/world.ts';

const AENV = new URL('../../bin/aenv', import.meta.url).pathname;

let world: World;
let home: string;

before(async () => {
  world = await createWorld();
  home = await mkdtemp(join(tmpdir(), 'aenv-cli-e2e-'));
});

after(async () => {
  await world?.destroy();
  if (home) await rm(home, { recursive: true, force: true });
});

async function aenv(args: string[], input = ''): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const { url, apiKey } = world.server;
  const env = { PATH: process.env.PATH, HOME: home, AENV_URL: url, AENV_API_KEY: apiKey };
  const child = spawn(AENV, args, { cwd: home, env });
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const [stdout, stderr, [code]] = await Promise.all([
    buffer(child.stdout),
    buffer(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  return { code, stdout: stdout.toString(), stderr: stderr.toString() };
}

/** Runs it, and fails unless it succeeds; returns what it printed. */
async function succeed(args: string[], input?: string): Promise<string> {
  const { code, stdout, stderr } = await aenv(args, input);
  assert.equal(code, 0, `aenv ${args.join(' ')}: ${stderr}`);
  return stdout;
}

test('an image that cannot be had fails with the reason', async () => {
  const { code, stderr } = await aenv(['pull', world.image.replace('debian:bookworm', 'nothing:here')]);
  assert.notEqual(code, 0);
  assert.match(stderr, /template_build_failed/);
});

test('from an image to a sandbox that is used, paused, resumed and deleted', async () => {
  assert.match(await succeed(['pull', world.image, '--memory', '256', '--name', 'box']), /Template box .* is ready/);
  assert.match(await succeed(['template', 'list']), /"box"/);
  const started = JSON.parse(await succeed(['start', 'box', '-d', '-o', 'json'])) as { sandboxID: string };
  const id = started.sandboxID;

  const script = 'cat; echo problem >&2; exit 7';
  const ran = await aenv(['exec', id, '--', 'sh', '-c', script], 'through stdin');
  assert.deepEqual([ran.stdout, ran.stderr, ran.code], ['through stdin', 'problem\n', 7]);

  const bytes = randomBytes(300_000);
  await mkdir(join(home, 'tree/deep'), { recursive: true });
  await writeFile(join(home, 'tree/deep/file'), bytes);
  await succeed(['upload', id, join(home, 'tree'), '/root/tree']);
  await succeed(['exec', id, '--', 'sh', '-c', 'echo in memory > /dev/shm/note']);

  await succeed(['pause', id]);
  assert.match(await succeed(['list', '--state', 'paused']), new RegExp(id));
  await succeed(['resume', id]);
  assert.equal(await succeed(['exec', id, '--', 'cat', '/dev/shm/note']), 'in memory\n');

  await succeed(['download', id, '/root/tree', join(home, 'back')]);
  assert.ok((await readFile(join(home, 'back/deep/file'))).equals(bytes));

  const copy = (await succeed(['snapshot', 'create', id, '--name', 'copy'])).trim();
  assert.equal(copy, 'copy:default');
  const checked = await aenv(['exec', '--checkpoint', id, '--', 'sh', '-c', 'echo changed > /dev/shm/note']);
  assert.equal(checked.code, 0, checked.stderr);
  const [, checkpoint = ''] = checked.stderr.match(/checkpoint (\S+);/) ?? [];
  await succeed(['rollback', id, checkpoint]);
  assert.equal(await succeed(['exec', id, '--', 'cat', '/dev/shm/note']), 'in memory\n');
  const children = (await succeed(['fork', id, '-n', '2', '-o', 'table'])).trim().split('\n');
  assert.equal(children.length, 2);
  assert.equal(await succeed(['exec', children[1] ?? '', '--', 'cat', '/dev/shm/note']), 'in memory\n');
  await succeed(['delete', ...children]);
  assert.match(await succeed(['snapshot', 'list', '--sandbox', id]), /copy:default/);
  assert.notEqual((await aenv(['snapshot', 'delete', checkpoint])).code, 0, 'the sandbox stands on it');

  const drawn = await succeed(['tree', children[0] ?? '', '-o', 'table']);
  assert.match(drawn, new RegExp(`^template box:default.*\n└── sandbox ${id}.*MiB of its own\n`));
  assert.match(drawn, new RegExp(`sandbox ${children[0]} +ended \\(killed\\)`));
  const kinds = JSON.parse(await succeed(['ops', id])).map(({ kind }: { kind: string }) => kind);
  assert.deepEqual(kinds, ['fork', 'rollback', 'snapshot', 'snapshot', 'resume', 'pause', 'start']);
  assert.match(await succeed(['node', '-o', 'table']), /^Sandboxes +1 of 100 running, 0 waiting/);
  assert.match(await succeed(['audit', '--json']), /^\[\]$/m);

  assert.match(await succeed(['logs', id]), /./);
  await succeed(['delete', id]);
  assert.equal((await world.server.call('GET', `/sandboxes/${id}`)).status, 404);
  assert.notEqual((await aenv(['exec', id, '--', 'true'])).code, 0);
  for (const snapshot of [copy, checkpoint]) await succeed(['snapshot', 'delete', snapshot]);
  assert.deepEqual(JSON.parse(await succeed(['gc', '--dry-run'])), [], 'the template stands on the image');
  await succeed(['template', 'delete', 'box']);
  assert.equal(JSON.parse(await succeed(['gc'])).length, 1);
  assert.deepEqual(JSON.parse(await succeed(['gc'])), []);
});
