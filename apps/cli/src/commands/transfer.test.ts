import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { aenvdMissing, startAenvd } from '@aenv/guest/testing';
import { fakeSandbox, startFakeServer } from '../testing/fake-server.ts';
import { type CliRun, runCli, withHome } from '../testing/run-cli.ts';

type Run = (...args: string[]) => Promise<CliRun>;

/** `here` is our working directory, `there` one that stands for a directory of the sandbox. */
async function withSandbox(work: (run: Run, here: string, there: string) => Promise<void>): Promise<void> {
  await using daemon = await startAenvd();
  await using server = await startFakeServer(daemon.port);
  server.sandboxes.set('box', fakeSandbox('box'));
  await withHome(async (home) => {
    const [here, there] = [join(home, 'here'), join(home, 'there')];
    for (const directory of [here, there]) await mkdir(directory);
    await work((...args) => runCli(args, { home, url: server.url, cwd: here }), here, there);
  });
}

describe('upload and download', { skip: aenvdMissing }, () => {
  test('a file keeps its bytes both ways, an empty one too', () =>
    withSandbox(async (run, here, there) => {
      for (const [name, bytes] of [
        ['big', randomBytes(3_000_000)],
        ['empty', Buffer.alloc(0)],
      ] as const) {
        await writeFile(join(here, name), bytes);
        assert.equal((await run('upload', 'box', name, `${there}/sub/${name}`)).code, 0);
        assert.ok((await readFile(join(there, 'sub', name))).equals(bytes));
        const { code, stderr } = await run('download', 'box', `${there}/sub/${name}`, `${name}.back`);
        assert.equal(code, 0, stderr);
        assert.ok((await readFile(join(here, `${name}.back`))).equals(bytes));
      }
    }));

  test('a directory travels with what is in it, executables stay so, links are left out and named', () =>
    withSandbox(async (run, here, there) => {
      await mkdir(join(here, 'tree/a/empty'), { recursive: true });
      await writeFile(join(here, 'tree/a/-run me'), '#!/bin/sh\n');
      await chmod(join(here, 'tree/a/-run me'), 0o755);
      await symlink('/etc/passwd', join(here, 'tree/link'));
      const up = await run('upload', 'box', 'tree', there);
      assert.equal(up.code, 0, up.stderr);
      assert.match(up.stderr, /skipped \(not a regular file\): tree\/link/);
      await symlink('/etc', join(there, 'tree/out'));
      const down = await run('download', 'box', `${there}/tree`, 'copy');
      assert.equal(down.code, 0, down.stderr);
      assert.match(down.stderr, /skipped \(not a regular file\): \S*tree\/out/);
      assert.deepEqual((await readdir(join(here, 'copy'), { recursive: true })).sort(), ['a', 'a/-run me', 'a/empty']);
      assert.equal((await stat(join(here, 'copy/a/-run me'))).mode & 0o777, 0o755);
    }));

  test('what exists is kept without --force, and nothing half-written stays', () =>
    withSandbox(async (run, here, there) => {
      await writeFile(join(there, 'f'), 'new');
      await writeFile(join(here, 'f'), 'old');
      const refused = await run('download', 'box', `${there}/f`);
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, /exists already \[conflict\]\n {2}Replace it with --force/);
      assert.equal(await readFile(join(here, 'f'), 'utf8'), 'old');
      assert.equal((await run('download', '--force', 'box', `${there}/f`)).code, 0);
      assert.equal(await readFile(join(here, 'f'), 'utf8'), 'new');
      assert.deepEqual(await readdir(here), ['f']);
    }));

  test('a link in the target is never followed out of it', () =>
    withSandbox(async (run, here, there) => {
      await mkdir(join(there, 'tree/sub'), { recursive: true });
      await writeFile(join(there, 'tree/sub/f'), 'evil');
      await mkdir(join(here, 'outside'));
      await mkdir(join(here, 'tree'));
      await symlink('../outside', join(here, 'tree/sub'));
      const { code, stderr } = await run('download', '--force', 'box', `${there}/tree`);
      assert.equal(code, 1);
      assert.match(stderr, /is not a directory \[conflict\]/);
      assert.deepEqual(await readdir(join(here, 'outside')), []);
    }));

  test('a missing file, here or there, is said plainly', () =>
    withSandbox(async (run, _here, there) => {
      assert.match((await run('upload', 'box', 'nothing', there)).stderr, /nothing cannot be read: ENOENT/);
      const { code, stderr } = await run('download', 'box', `${there}/nothing`);
      assert.equal(code, 1);
      assert.match(stderr, /\[not_found\]/);
    }));
});
