import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { cpioArchive } from './cpio.ts';
import { buildInitramfs } from './initramfs.ts';
import { moduleDependencies, orderedModules, parseBuiltin } from './kernel-modules.ts';

let directory = '';
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'aenv-initramfs-'));
  await mkdir(join(directory, 'modules'));
});
afterEach(() => rm(directory, { recursive: true }));

/** The bytes of a module as far as anybody here looks at them. */
const moduleFile = (name: string, depends: string) =>
  Buffer.from(`\x7fELF license=GPL\0depends=${depends}\0name=${name}\0`, 'latin1');

async function kernel(modules: Record<string, string>, builtin: string[]): Promise<void> {
  for (const [name, depends] of Object.entries(modules)) {
    await writeFile(join(directory, 'modules', `${name}.ko`), moduleFile(name, depends));
  }
  await writeFile(join(directory, 'modules.builtin'), builtin.map((name) => `kernel/x/${name}.ko\n`).join(''));
}

const ALL = {
  virtio: 'virtio_ring',
  virtio_ring: '',
  virtio_mmio: 'virtio,virtio_ring',
  'virtio-blk': 'virtio,virtio-ring',
  virtio_net: 'virtio,net_failover',
  net_failover: 'failover',
  failover: '',
  fuse: '',
};

test('a module comes after all that it depends on, and what is built in is left out', async () => {
  await kernel(ALL, ['ext4']);
  const names = (await orderedModules(directory)).map((module) => module.name);
  assert.deepEqual(names, [
    'virtio_ring',
    'virtio',
    'virtio_mmio',
    'virtio_blk',
    'failover',
    'net_failover',
    'virtio_net',
    'fuse',
  ]);
});

test('a needed module that is neither there nor built in is named', async () => {
  await kernel(ALL, []);
  await assert.rejects(orderedModules(directory), {
    code: 'host_missing_tool',
    message: /the module ext4 is missing/,
    remedy: /fetch-kernel\.sh/,
  });
});

test('a missing dependency of an optional module is an error too, and so is a circle', async () => {
  await kernel({ ...ALL, fuse: 'nowhere' }, ['ext4']);
  await assert.rejects(orderedModules(directory), { message: /the module nowhere is missing/ });
  await kernel({ ...ALL, failover: 'net_failover' }, ['ext4']);
  await assert.rejects(orderedModules(directory), { message: /net_failover → failover → net_failover/ });
});

test('the dependencies are read from .modinfo only', () => {
  assert.deepEqual(moduleDependencies(Buffer.from('xdepends=a\0depends=b-c,d\0')), ['b_c', 'd']);
  assert.deepEqual(moduleDependencies(Buffer.from('\0depends=\0')), []);
  assert.deepEqual(moduleDependencies(Buffer.from('no such key')), []);
});

test('built-in modules are known by the last part of their path', () => {
  assert.deepEqual(
    parseBuiltin('kernel/fs/ext4/ext4.ko\nkernel/drivers/char/hw_random/rng-core.ko\n'),
    new Set(['ext4', 'rng_core']),
  );
});

test('cpio(1) unpacks the initramfs to what went in', async (t) => {
  try {
    execFileSync('cpio', ['--version'], { stdio: 'ignore' });
  } catch {
    t.skip('cpio is not installed');
    return;
  }
  await kernel(ALL, ['ext4']);
  const daemon = join(directory, 'aenvd');
  await writeFile(daemon, 'daemon!');
  const output = join(directory, 'initramfs');
  await buildInitramfs({ aenvd: daemon, kernelDir: directory, output });
  const root = join(directory, 'root');
  await mkdir(root);
  const archive = await readFile(output);
  const listing = execFileSync('cpio', ['-itv', '--quiet'], { input: archive, encoding: 'utf8' });
  assert.match(listing, /^crw-------.* 5, +1 .* dev\/console$/m);
  assert.match(listing, /^-rwxr-xr-x .* init$/m);
  execFileSync('cpio', ['-id', '--quiet', 'init', 'lib/*'], { input: archive, cwd: root });
  assert.equal(await readFile(join(root, 'init'), 'utf8'), 'daemon!');
  assert.deepEqual(
    await readFile(join(root, 'lib/modules/ordered/003-virtio_blk.ko')),
    moduleFile('virtio-blk', 'virtio,virtio-ring'),
  );
  await buildInitramfs({ aenvd: daemon, kernelDir: directory, output });
  assert.deepEqual(await readFile(output), archive, 'equal input gives equal bytes');
});

test('every part of a cpio archive ends on a multiple of four bytes', () => {
  for (let length = 0; length < 6; length++) {
    const archive = cpioArchive([
      { kind: 'file', path: 'x'.repeat(length + 1), mode: 0o644, content: Buffer.alloc(length, 7) },
    ]);
    assert.equal(archive.length % 4, 0);
    assert.equal(archive.indexOf('070701', 6, 'latin1') % 4, 0);
  }
});

test('a daemon that is not built is said so', async () => {
  await kernel(ALL, ['ext4']);
  const parts = { aenvd: join(directory, 'nothing'), kernelDir: directory, output: join(directory, 'out') };
  await assert.rejects(buildInitramfs(parts), { code: 'host_missing_tool', message: /nothing is not built/ });
});
