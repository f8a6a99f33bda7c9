import assert from 'node:assert/strict';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { lockHome } from './home-lock.ts';

async function temporaryDirectory(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'aenv-lock-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

test('a second server is refused, also under another name of the directory, until the first is gone', async (t) => {
  const directory = await temporaryDirectory(t);
  const home = join(directory, 'home');
  const first = await lockHome(home);
  t.after(() => first.release().catch(() => {}));
  const refused = { code: 'conflict', message: new RegExp(`process ${process.pid}\\) already uses`) };
  await assert.rejects(lockHome(home), refused);
  await symlink(home, join(directory, 'other'));
  await assert.rejects(lockHome(join(directory, 'other')), refused);
  await first.release();
  const again = await lockHome(home);
  await again.release();
});

test('two homes do not disturb each other', async (t) => {
  const directory = await temporaryDirectory(t);
  const locks = [await lockHome(join(directory, 'a')), await lockHome(join(directory, 'b'))];
  await Promise.all(locks.map((lock) => lock.release()));
});
