/** What goes wrong ends with a clear error, and leaves nothing behind. Broken images: packages/image. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { buildTemplate, createWorld, type World } from './support/world.ts';

const SERVER = new URL('../../bin/aenv-server', import.meta.url).pathname;

let world: World;

before(async () => {
  world = await createWorld();
});

after(async () => {
  await world?.destroy();
});

async function failedBuild(image: string): Promise<string> {
  const error = await buildTemplate(world.server, { name: 'broken', image }).then(
    () => assert.fail('the build succeeded'),
    (reason: Error) => reason.message,
  );
  assert.deepEqual(await readdir(join(world.server.home, 'templates')), []);
  return error;
}

test('an unknown image', async () => {
  assert.match(await failedBuild(world.image.replace('debian:bookworm', 'nothing:here')), /nothing/);
});

test('a reference that is none', async () => {
  const created = await world.server.call('POST', '/v3/templates', { name: 'broken' });
  const { templateID, buildID } = created.body as { templateID: string; buildID: string };
  const { status } = await world.server.call('POST', `/v2/templates/${templateID}/builds/${buildID}`, {
    fromImage: 'UPPER case; rm -rf /',
  });
  if (status === 202) assert.match(await failedBuild('UPPER case; rm -rf /'), /reference/);
  else assert.equal(status, 400);
});

test('a registry that dies half-way', async () => {
  const dying = createServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'application/vnd.oci.image.manifest.v1+json', 'Content-Length': 1000 });
    response.write('{"schemaVersion":2,');
    setTimeout(() => response.destroy(), 20);
  }).listen(0, '127.0.0.1');
  await once(dying, 'listening');
  const { port } = dying.address() as { port: number };
  try {
    assert.match(await failedBuild(`127.0.0.1:${port}/library/debian:bookworm`), /registry|127\.0\.0\.1/);
  } finally {
    dying.closeAllConnections();
    dying.close();
  }
});

test('a registry that does not answer', async () => {
  assert.match(await failedBuild('127.0.0.1:1/library/debian:bookworm'), /127\.0\.0\.1:1/);
});

test('a disk that is smaller than the image', async () => {
  const created = await world.server.call('POST', '/v3/templates', { name: 'small' });
  const { templateID, buildID } = created.body as { templateID: string; buildID: string };
  const { body, status } = await world.server.call('POST', '/sandboxes-cold', { image: world.image, diskSizeMB: 16 });
  assert.ok(status >= 400, 'a Debian on 16 MiB');
  assert.match((body as { message: string }).message, /disk|space|size/i);
  assert.equal((await world.server.call('DELETE', `/templates/${templateID}`)).status, 204);
  assert.ok(buildID);
});

test('a wrong key, no key', async () => {
  for (const headers of [{}, { 'X-API-Key': 'e2b_0000' }]) {
    const response = await fetch(`${world.server.url}/v2/sandboxes`, { headers: headers as Record<string, string> });
    assert.equal(response.status, 401);
    const { code, message } = (await response.json()) as { code: number; message: string };
    assert.equal(code, 401);
    assert.ok(message.length > 0);
  }
});

test('a body that is no JSON, one that is too deep, one that is too large', async () => {
  const post = (body: string) =>
    fetch(`${world.server.url}/sandboxes`, {
      method: 'POST',
      headers: { 'X-API-Key': world.server.apiKey, 'Content-Type': 'application/json' },
      body,
    });
  assert.equal((await post('{"templateID":')).status, 400);
  assert.equal((await post(`${'['.repeat(50_000)}${']'.repeat(50_000)}`)).status, 400);
  assert.equal((await post(JSON.stringify({ templateID: 'x'.repeat(20_000_000) }))).status, 413);
  assert.equal((await world.server.call('GET', '/v2/sandboxes')).status, 200);
});

/** Starts a server that is expected to give up; returns its exit code and what it said. */
const startAndFail = (env: Record<string, string>) => runAndFail([SERVER], env);

function runAndFail(command: string[], env: Record<string, string>): { status: number | null; output: string } {
  const [program = '', ...args] = command;
  const { status, stdout, stderr } = spawnSync(program, args, {
    env: { ...process.env, ...env },
    encoding: 'utf8',
    timeout: 30_000,
  });
  return { status, output: stdout + stderr };
}

test('an address that is taken', async () => {
  const home = await mkdtemp(join(tmpdir(), 'aenv-taken-'));
  try {
    const { status, output } = startAndFail({ AENV_HOME: home, AENV_LISTEN: new URL(world.server.url).host });
    assert.notEqual(status, 0);
    assert.match(output, /in use|taken/);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});

test('a home that another server uses', () => {
  const { status, output } = startAndFail({ AENV_HOME: world.server.home, AENV_LISTEN: '127.0.0.1:0' });
  assert.notEqual(status, 0);
  assert.match(output, new RegExp(world.server.home));
});

test('a machine without QEMU', async () => {
  const home = await mkdtemp(join(tmpdir(), 'aenv-noqemu-'));
  try {
    // In a mount namespace of its own the program is a file that cannot be run.
    const qemu = execFileSync('sh', ['-c', 'command -v qemu-system-x86_64'], { encoding: 'utf8' }).trim();
    const hide = 'mount --bind /dev/null "$0" && exec "$@"';
    const command = ['unshare', '--mount', 'sh', '-c', hide, qemu, SERVER];
    const { status, output } = runAndFail(command, { AENV_HOME: home, AENV_LISTEN: '127.0.0.1:0' });
    assert.notEqual(status, 0);
    assert.match(output, /qemu-system-x86_64: not installed/);
    assert.match(output, /make setup/);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});

test('a setting that does not exist', async () => {
  const home = await mkdtemp(join(tmpdir(), 'aenv-config-'));
  const file = join(home, 'config.toml');
  try {
    await writeFile(file, 'lisen = "127.0.0.1:1"\n');
    await chmod(file, 0o600);
    const { status, output } = startAndFail({ AENV_HOME: home, AENV_CONFIG: file });
    assert.notEqual(status, 0);
    assert.match(output, /listen/);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});
