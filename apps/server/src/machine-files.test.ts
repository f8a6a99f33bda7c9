import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { installMachineFiles, type MachineSources } from './machine-files.ts';

/** A kernel directory in which everything is built in, so that no module is needed. */
async function sources(t: TestContext): Promise<MachineSources> {
  const root = await mkdtemp(join(tmpdir(), 'aenv-machine-'));
  t.after(() => rm(root, { recursive: true, force: true }));
  const kernelDirectory = join(root, 'kernel');
  await mkdir(join(kernelDirectory, 'modules'), { recursive: true });
  await writeFile(join(kernelDirectory, 'vmlinuz'), 'kernel 1');
  const builtin = ['virtio_mmio', 'virtio_blk', 'virtio_net', 'ext4'].map((name) => `kernel/${name}.ko\n`);
  await writeFile(join(kernelDirectory, 'modules.builtin'), builtin.join(''));
  await writeFile(join(root, 'aenvd'), 'daemon 1');
  return { home: join(root, 'home'), kernelDirectory, aenvd: join(root, 'aenvd') };
}

test('the same files are installed once, changed ones beside the old', async (t) => {
  const given = await sources(t);
  const first = await installMachineFiles(given);
  assert.equal(await readFile(first.kernel, 'utf8'), 'kernel 1');
  assert.ok((await readFile(first.initramfs)).includes('daemon 1'));
  for (const file of [first.kernel, first.initramfs]) assert.equal((await stat(file)).mode & 0o777, 0o444);
  assert.deepEqual(await installMachineFiles(given), first);

  await writeFile(given.aenvd, 'daemon 2');
  const second = await installMachineFiles(given);
  assert.notEqual(second.initramfs, first.initramfs);
  assert.ok((await readFile(first.initramfs)).includes('daemon 1'));
  assert.ok((await readFile(second.initramfs)).includes('daemon 2'));
  assert.equal((await readdir(join(given.home, 'machine'))).length, 2);
});

test('a missing kernel or daemon is named with the way to get it, and nothing is left behind', async (t) => {
  const given = await sources(t);
  const without = (changed: Partial<MachineSources>) => installMachineFiles({ ...given, ...changed });
  await assert.rejects(without({ kernelDirectory: join(given.home, 'none') }), {
    code: 'host_missing_tool',
    message: /no guest kernel in/,
    remedy: /make setup/,
  });
  await assert.rejects(without({ aenvd: join(given.home, 'none') }), {
    code: 'host_missing_tool',
    remedy: /make setup/,
  });
  assert.deepEqual(await readdir(join(given.home, 'machine')), []);
});
