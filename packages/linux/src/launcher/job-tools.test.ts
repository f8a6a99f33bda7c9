import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Home } from '../home.ts';
import { planJob } from './job-tools.ts';

const root = await mkdtemp(join(tmpdir(), 'aenv-tools-'));
after(() => rm(root, { recursive: true, force: true }));
const home = await Home.open(root);
const disk = join(home.root, 'disk');

test('a disk layer names the file that it makes', () => {
  const args = [
    'create',
    '-q',
    '-u',
    '-f',
    'qcow2',
    '-o',
    'cluster_size=64k,extended_l2=on',
    '-b',
    `${disk}.base`,
    disk,
    '64M',
  ];
  assert.deepEqual(planJob('qemu-img', args, home), {
    program: 'qemu-img',
    args,
    output: disk,
    network: false,
    kvm: false,
  });
});

test('file system tools change the file that they are given', () => {
  assert.equal(planJob('mke2fs', ['-q', '-t', 'ext4', '-d', `${disk}.tar`, disk, '64M'], home).output, disk);
  assert.equal(planJob('resize2fs', [disk, '128M'], home).output, disk);
});

test('only an image pull has a network', () => {
  assert.equal(planJob('image-pull', [], home).network, true);
  assert.equal(planJob('qemu-img', ['--version'], home).network, false);
});

const refused: [string, unknown][] = [
  ['sh', ['-c', 'id']],
  ['constructor', []],
  ['image-pull', ['--eval']],
  ['qemu-img', ['create', '/etc/passwd', '1M']],
  ['qemu-img', ['create', `${root}/../x`, '1M']],
  ['qemu-img', ['create', '-b', '/etc/shadow', disk]],
  ['qemu-img', ['create', '-o', 'backing_file=/etc/shadow', disk]],
  ['qemu-img', ['create', '-o', 'cluster_size=64k,data_file=/x', disk]],
  ['qemu-img', ['create', '--object', 'secret', disk]],
  ['qemu-img', ['create', disk, '1M', 'more']],
  ['qemu-img', ['create', disk, '1M;id']],
  ['qemu-img', ['create', 'nbd://host/x', '1M']],
  ['qemu-img', ['info', 'json:{"driver":"nbd"}']],
  ['qemu-img', ['convert', disk, disk]],
  ['qemu-img', []],
  ['mke2fs', ['-d', '/root', disk]],
  ['mke2fs', ['/dev/vda']],
  ['mke2fs', ['-U', 'random; id', disk]],
  ['resize2fs', []],
  ['qemu-system-x86_64', ['-m', '64M']],
  ['qemu-img', [1]],
  ['qemu-img', null],
];
for (const [tool, args] of refused) {
  test(`${tool} ${JSON.stringify(args)} is refused`, () => {
    assert.throws(() => planJob(tool, args, home), { code: 'bad_request' });
  });
}
