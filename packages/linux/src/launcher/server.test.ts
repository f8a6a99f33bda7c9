import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmod, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { silentLogger } from '@aenv/std';
import fc from 'fast-check';
import { JOB_UID } from '../addresses.ts';
import { missing, QEMU, World } from '../testing/world.ts';
import { startLauncher } from './server.ts';

const skip = missing('qemu-img');

async function socketTo(world: World): Promise<Socket> {
  const socket = connect(world.socketPath);
  await once(socket, 'connect');
  return socket;
}

/** Sends bytes and waits until the launcher has answered or hung up. */
async function poke(world: World, bytes: string | Uint8Array): Promise<string> {
  const socket = await socketTo(world);
  socket.on('error', () => {});
  let said = '';
  socket.setEncoding('utf8').on('data', (text: string) => {
    said += text;
    if (said.endsWith('\n')) socket.destroy();
  });
  socket.end(bytes);
  if (!socket.closed) await once(socket, 'close');
  return said;
}

const METHODS = [
  'createSlot',
  'setPolicy',
  'destroySlot',
  'spawnVm',
  'killVm',
  'dumpMemory',
  'patchMemory',
  'seal',
  'run',
];

describe('the launcher’s socket', { skip }, () => {
  test('belongs to root alone', async () => {
    await using world = await World.make();
    const client = await world.start();
    const { uid, mode } = await stat(world.socketPath);
    assert.deepEqual([uid, mode & 0o777], [0, 0o600]);
    assert.deepEqual(await client.listVms(), []);
    await chmod(dirname(world.socketPath), 0o755);
    const options = { home: world.home, socketPath: world.socketPath, logger: silentLogger };
    await assert.rejects(startLauncher(options), { code: 'host_unsupported' });
    await chmod(dirname(world.socketPath), 0o700);
  });

  test('survives bytes of any kind', async () => {
    await using world = await World.make();
    const client = await world.start();
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => {
        await poke(world, Buffer.concat([bytes, Buffer.from('\n')]));
      }),
      { numRuns: 100 },
    );
    assert.deepEqual(await client.listVms(), []);
  });

  test('refuses parameters of any kind that are not those of the method', async () => {
    await using world = await World.make();
    const client = await world.start();
    const params = fc.oneof(
      fc.jsonValue(),
      fc.dictionary(fc.constantFrom('id', 'slot', 'path', 'policy'), fc.jsonValue()),
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...METHODS), params, async (method, given) => {
        const said = await poke(world, `${JSON.stringify({ id: 1, method, params: given })}\n`);
        const { error } = JSON.parse(said) as { error?: { code: string } };
        // There are no slots and VMs: a lucky guess of valid parameters finds nothing to destroy.
        if (error) assert.ok(['bad_request', 'not_found'].includes(error.code), said);
        else assert.ok(['destroySlot', 'killVm'].includes(method), said);
      }),
      { numRuns: 200 },
    );
    assert.deepEqual(await client.listSlots(), []);
  });

  test('knows its methods and no others', async () => {
    await using world = await World.make();
    await world.start();
    for (const method of ['', 'toString', '__proto__', 'exec']) {
      const said = JSON.parse(await poke(world, `${JSON.stringify({ id: 1, method, params: {} })}\n`));
      assert.equal(said.error.code, 'bad_request');
    }
  });

  test('seals files below AENV_HOME and nothing else', async () => {
    await using world = await World.make();
    const client = await world.start();
    const path = join(world.home, 'file');
    await writeFile(path, 'x');
    await client.seal(path);
    assert.equal((await stat(path)).mode & 0o777, 0o444);
    await writeFile(join(await world.directory('elsewhere'), 'file'), 'x');
    await symlink(join(world.home, 'elsewhere'), join(world.home, 'way'));
    await symlink('/etc/hostname', join(world.home, 'link'));
    for (const name of ['link', 'way/file', 'absent', 'elsewhere', '../x', './file']) {
      await assert.rejects(client.seal(`${world.home}/${name}`), { code: 'bad_request' }, name);
    }
    await assert.rejects(client.seal('/etc/hostname'), { code: 'bad_request' });
  });

  test('runs jobs as their own user, without a trace of it in what they make', async () => {
    await using world = await World.make();
    const client = await world.start();
    const path = join(await world.directory('staging'), 'disk');
    const args = ['create', '-q', '-f', 'qcow2', path, '1M'];
    const result = await client.run({ tool: 'qemu-img', args, timeoutMs: 20_000 });
    assert.deepEqual(result, { code: 0, signal: null, stdout: '', stderr: '' });
    const { uid, mode } = await stat(path);
    assert.deepEqual([uid, mode & 0o777], [0, 0o600]);
    assert.equal((await readFile(path)).toString('latin1', 0, 3), 'QFI');
    assert.equal((await stat(join(world.home, 'images'))).uid, JOB_UID);

    await mkdir(join(world.home, 'closed'), { mode: 0o700 });
    await writeFile(join(world.home, 'closed', 'x'), 'x');
    const info = await client.run({
      tool: 'qemu-img',
      args: ['info', join(world.home, 'closed', 'x')],
      timeoutMs: 20_000,
    });
    assert.equal(info.code, 1);
    assert.match(info.stderr, /Permission denied/);
  });

  test('streams the lines of a job, and ends it when it is cancelled or late', { skip: missing(QEMU) }, async () => {
    await using world = await World.make();
    const client = await world.start();
    const lines: string[] = [];
    const job = { tool: QEMU, args: ['--version'], timeoutMs: 20_000 };
    await client.run(job, { onLine: (line) => lines.push(line) });
    assert.match(lines[0] ?? '', /^QEMU emulator version/);

    const endless = {
      ...job,
      args: (await world.vm('endless', 0)).argv.slice(1).filter((_, at, all) => !isNetwork(all, at)),
    };
    const cancel = AbortSignal.timeout(300);
    await assert.rejects(client.run(endless, { signal: cancel }), { code: 'internal', message: /timeout/ });
    await assert.rejects(client.run({ ...endless, timeoutMs: 300 }), { code: 'timeout' });
    const broken = client.run(job, {
      onLine: () => {
        throw new Error('the listener failed');
      },
    });
    await assert.rejects(broken, /the listener failed/);
    assert.deepEqual(await client.listVms(), []);
  });
});

/** A job has no tap. */
function isNetwork(all: string[], at: number): boolean {
  const names = ['-netdev', '-device', '-qmp'];
  return names.includes(all[at] ?? '') || names.includes(all[at - 1] ?? '');
}
