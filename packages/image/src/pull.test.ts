import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { runTool } from '@aenv/linux';
import { AenvError } from '@aenv/std';
import {
  addIndexToLayout,
  addToLayout,
  hostArchitecture,
  packTar,
  REGISTRY_CREDENTIALS,
  registryMissing,
  startRegistry,
  type TestRegistry,
} from '@aenv/testkit';
import { type PulledImage, type PullProgress, type PullRequest, pullImage } from './pull.ts';
import { parseReference } from './reference.ts';

const run = promisify(execFile);
const SBIN = { env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` } };

const BASE = packTar([
  { path: './', type: 'directory', mode: 0o755 },
  { path: 'etc/', type: 'directory', mode: 0o755 },
  { path: 'etc/hostname', content: 'base\n' },
  { path: 'etc/gone', content: 'x' },
  { path: 'bin/tool', content: '#!/bin/sh\n', mode: 0o4755, uid: 3_000_000, gid: 42 },
  { path: 'bin/alias', type: 'hardlink', link: 'bin/tool', mode: 0o4755, uid: 3_000_000, gid: 42 },
  { path: 'dev/zero', type: 'character', major: 1, minor: 5, mode: 0o666 },
]);
const TOP = packTar([
  { path: 'etc/hostname', content: 'top\n' },
  { path: 'etc/.wh.gone' },
  { path: `deep/${'n'.repeat(150)}/${'m'.repeat(200)}`, content: 'long' },
]);
const CONFIG = {
  Env: ['PATH=/bin', 'A=b=c'],
  WorkingDir: '/srv',
  User: 'web',
  Entrypoint: ['/bin/tool'],
  Cmd: ['-x'],
  Labels: { a: 'b' },
};

describe('pull', { skip: registryMissing() }, () => {
  let directory: string;
  let registry: TestRegistry;
  let digest: string;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'aenv-pull-'));
    registry = await startRegistry();
    const image = { layers: [{ tar: BASE }, { tar: TOP, compression: 'zstd' as const }], config: CONFIG };
    digest = await addToLayout(join(directory, 'layout'), 'one', image);
    await registry.push(`oci:${join(directory, 'layout')}:one`, 'team/app:1');
  });

  after(async () => {
    await registry?.stop();
    await rm(directory, { recursive: true, force: true });
  });

  function pull(reference: string, more: Partial<PullRequest> = {}): Promise<PulledImage> {
    return pullImage({
      reference: parseReference(reference),
      destination: join(directory, 'disks'),
      cacheDir: join(directory, 'cache'),
      diskSizeMb: 32,
      runTool,
      ...more,
    });
  }

  async function debugfs({ diskPath }: PulledImage, command: string): Promise<string> {
    return (await run('debugfs', ['-R', command, diskPath], SBIN)).stdout;
  }

  test('from a registry: contents, owners, modes, links, devices and configuration', async () => {
    const progress: PullProgress[] = [];
    const pulled = await pull(`${registry.host}/team/app:1`, { onProgress: (item) => progress.push(item) });
    assert.equal(pulled.digest, digest);
    assert.deepEqual(pulled.config, {
      env: { PATH: '/bin', A: 'b=c' },
      workingDir: '/srv',
      user: 'web',
      entrypoint: ['/bin/tool'],
      cmd: ['-x'],
      labels: { a: 'b' },
      architecture: hostArchitecture(),
    });
    assert.equal(await debugfs(pulled, 'cat /etc/hostname'), 'top\n');
    assert.equal(await debugfs(pulled, 'cat /etc/gone'), '');
    assert.equal(await debugfs(pulled, `cat /deep/${'n'.repeat(150)}/${'m'.repeat(200)}`), 'long');
    const tool = await debugfs(pulled, 'stat /bin/tool');
    assert.match(tool, /Mode: +04755/);
    assert.match(tool, /User: +3000000 +Group: +42/);
    assert.match(tool, /Links: 2/);
    assert.match(await debugfs(pulled, 'stat /dev/zero'), /character special[\s\S]*01:05/);
    await run('e2fsck', ['-fn', pulled.diskPath], SBIN);
    const layers = progress.filter(({ step }) => step === 'layer');
    assert.equal(new Set(layers.map(({ layer }) => layer)).size, 2);
    assert.ok(layers.some(({ completedBytes, totalBytes }) => completedBytes === totalBytes));
  });

  test('equal images give equal disks, from any source', async () => {
    const first = await pull(`${registry.host}/team/app@${digest}`, { destination: join(directory, 'first') });
    const second = await pull(`oci:${join(directory, 'layout')}:one`, { destination: join(directory, 'second') });
    assert.ok((await readFile(first.diskPath)).equals(await readFile(second.diskPath)));
  });

  test('a disk that is there is used again, and one of another size is another', async () => {
    const first = await pull(`oci:${join(directory, 'layout')}:one`);
    const runNothing = () => Promise.reject(new Error('nothing needs to run'));
    const again = await pull(`${registry.host}/team/app:1`, { runTool: runNothing });
    assert.deepEqual(again, first);
    assert.equal((await stat(first.diskPath)).size, 32 << 20);
    const larger = await pull(`oci:${join(directory, 'layout')}:one`, { diskSizeMb: 40 });
    assert.equal((await stat(larger.diskPath)).size, 40 << 20);
  });

  test('an index gives the image for the platform, or says what there is', async () => {
    const layout = join(directory, 'multi');
    const other = { layers: [{ tar: BASE }], architecture: 's390x' };
    const mine = { layers: [{ tar: TOP }] };
    await addIndexToLayout(layout, 'multi', [other, mine]);
    await addIndexToLayout(layout, 'other', [other]);
    await registry.push(`oci:${layout}:multi`, 'multi:1');
    await registry.push(`oci:${layout}:other`, 'other:1');
    assert.equal((await pull(`${registry.host}/multi:1`)).config.architecture, hostArchitecture());
    await assert.rejects(pull(`${registry.host}/other:1`), withCode('image_platform_missing', /linux\/s390x/));
    const platform = { os: 'linux', architecture: 's390x' };
    assert.equal((await pull(`oci:${layout}:other`, { platform })).config.architecture, 's390x');
  });

  test('credentials: none, wrong and right', async () => {
    await using locked = await startRegistry({ auth: true });
    await locked.push(`oci:${join(directory, 'layout')}:one`, 'app:1');
    const reference = `${locked.host}/app:1`;
    await assert.rejects(pull(reference), withCode('registry_unauthorized'));
    const wrong = { username: 'tester', password: 'no' };
    await assert.rejects(pull(reference, { credentials: wrong }), withCode('registry_unauthorized', /credentials/));
    assert.equal((await pull(reference, { credentials: REGISTRY_CREDENTIALS })).digest, digest);
  });

  test('unknown images, tags, layouts and archives', async () => {
    await assert.rejects(pull(`${registry.host}/team/app:2`), withCode('image_not_found'));
    await assert.rejects(pull(`${registry.host}/nobody/home`), withCode('image_not_found'));
    await assert.rejects(pull(`oci:${directory}/none`), withCode('image_not_found'));
    await assert.rejects(pull(`oci:${directory}/layout:two`), withCode('image_not_found', /two/));
    await assert.rejects(pull(`docker-archive:${directory}/none.tar`), withCode('image_not_found'));
  });

  test('a registry that is not there', async () => {
    const gone = await startRegistry();
    await gone.stop();
    await assert.rejects(pull(`${gone.host}/app`), withCode('registry_unavailable', new RegExp(gone.host)));
  });

  test('docker archives, plain and compressed', async () => {
    const archive = join(directory, 'archive.tar');
    await addToLayout(join(directory, 'gzip'), 'one', { layers: [{ tar: BASE }, { tar: TOP }] });
    await run('skopeo', ['copy', '-q', `oci:${directory}/gzip:one`, `docker-archive:${archive}:team/app:1`]);
    const pulled = await pull(`docker-archive:${archive}`);
    assert.equal(await debugfs(pulled, 'cat /etc/hostname'), 'top\n');
    await run('gzip', ['-k', archive]);
    const destination = join(directory, 'unzipped');
    const unzipped = await pull(`docker-archive:${archive}.gz:team/app:1`, { destination });
    assert.equal(unzipped.digest, pulled.digest);
    assert.equal(await debugfs(unzipped, 'cat /etc/hostname'), 'top\n');
    assert.deepEqual(
      (await readdir(join(directory, 'cache'))).filter((name) => name.includes('archive')),
      [],
    );
    await assert.rejects(
      pull(`docker-archive:${archive}:team/app:2`),
      withCode('image_not_found', /no image team\/app:2/),
    );
  });

  test('extended attributes of every kind', async () => {
    const capability = '\x01\x00\x00\x02\x80\x00\x00\x00\x00\x00\x00\x00\xff\x0a\x00\x00\x00\x00\x00\x00';
    const tar = packTar([
      {
        path: 'a "b" c',
        content: 'x',
        xattrs: new Map([
          ['user.odd', '\x00\xff"\\\n='],
          ['user.empty', ''],
        ]),
      },
      { path: 'ping', content: 'x', xattrs: new Map([['security.capability', capability]]) },
    ]);
    await addToLayout(join(directory, 'xattrs'), 'x', { layers: [{ tar }] });
    const pulled = await pull(`oci:${join(directory, 'xattrs')}`);
    assert.match(await debugfs(pulled, 'ea_list "/a ""b"" c"'), /user\.odd \(6\) = 00 ff 22 5c 0a 3d/);
    assert.match(await debugfs(pulled, 'ea_list "/a ""b"" c"'), /user\.empty \(0\)/);
    const hex = Buffer.from(capability, 'latin1').toString('hex').replaceAll(/../g, '$& ');
    assert.ok((await debugfs(pulled, 'ea_list /ping')).includes(hex.trim()));
  });

  test('a disk that is too small: refused, and nothing left behind', async () => {
    const tar = packTar([{ path: 'big', content: Buffer.alloc(12 << 20, 1) }]);
    await addToLayout(join(directory, 'big'), 'x', { layers: [{ tar }] });
    const destination = join(directory, 'small');
    const pulling = pull(`oci:${join(directory, 'big')}`, { destination, diskSizeMb: 10 });
    await assert.rejects(pulling, withCode('bad_request', /needs about \d+ MiB, but the disk has 10/));
    assert.deepEqual(await readdir(destination), []);
  });

  test('layers that lie: wrong bytes, truncated, and not what the configuration says', async () => {
    const layout = join(directory, 'lies');
    const tar = packTar([{ path: 'f', content: Buffer.alloc(100_000, 'abc') }]);
    await addToLayout(layout, 'x', { layers: [{ tar }] });
    const blobs = join(layout, 'blobs', 'sha256');
    const layer = await largest(blobs);
    const intact = await readFile(layer);
    const altered = Buffer.from(intact);
    altered[50] = (altered[50] ?? 0) ^ 1;
    await writeFile(layer, altered);
    await assert.rejects(pull(`oci:${layout}`), withCode('image_invalid', /digest/));
    await writeFile(layer, intact.subarray(0, -20));
    await assert.rejects(pull(`oci:${layout}`), withCode('image_invalid', /bytes instead of/));
  });

  test('a layer that the reader may not open', {
    skip: process.getuid?.() === 0 && 'root may open everything',
  }, async () => {
    const layout = join(directory, 'locked');
    await addToLayout(layout, 'x', { layers: [{ tar: BASE }] });
    await chmod(join(layout, 'index.json'), 0);
    await assert.rejects(pull(`oci:${layout}`), withCode('image_not_found', /cannot be read/));
  });
});

async function largest(directory: string): Promise<string> {
  const files = await Promise.all(
    (await readdir(directory)).map(async (name) => ({
      path: join(directory, name),
      bytes: await readFile(join(directory, name)),
    })),
  );
  return files.filter(({ bytes }) => bytes[0] === 0x1f)[0]?.path as string;
}

function withCode(code: string, message = /./): (error: unknown) => boolean {
  return (error) => error instanceof AenvError && error.code === code && message.test(error.message);
}
