import assert from 'node:assert/strict';
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { newApiKey } from '@aenv/std';
import { apiKeyFile, loadApiKeys, parseKeys } from './keys.ts';

async function temporaryHome(t: TestContext): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'aenv-keys-'));
  t.after(() => rm(home, { recursive: true, force: true }));
  return home;
}

test('the first start makes a key that only its owner can read, later starts keep it', async (t) => {
  const home = await temporaryHome(t);
  const first = await loadApiKeys(home);
  const key = (await readFile(first.file, 'utf8')).trim();
  assert.match(key, /^e2b_[0-9a-f]{40}$/);
  assert.equal(first.file, apiKeyFile(home));
  assert.equal((await stat(first.file)).mode & 0o777, 0o600);
  assert.equal((await stat(join(home, 'secrets'))).mode & 0o777, 0o700);
  assert.equal(first.created, true);
  assert.equal(first.isApiKey(key), true);
  const second = await loadApiKeys(home);
  assert.equal(second.created, false);
  assert.equal(second.isApiKey(key), true);
});

test('several keys are valid, anything else is not', async (t) => {
  const home = await temporaryHome(t);
  const { file } = await loadApiKeys(home);
  const keys = [newApiKey(), newApiKey()];
  await writeFile(file, `# of the team\n${keys[0]}\n\n  ${keys[1]}  # of the CI\n`);
  await chmod(file, 0o644);
  const { isApiKey } = await loadApiKeys(home);
  assert.deepEqual(keys.map(isApiKey), [true, true]);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  for (const wrong of ['', 'e2b_', newApiKey(), `${keys[0]}0`, keys[0]?.toUpperCase() ?? '', '# of the team'])
    assert.equal(isApiKey(wrong), false, wrong);
});

test('a damaged file is refused, and the message does not repeat what is in it', () => {
  const damaged = `${newApiKey()}\ne2b_almost-a-key\n`;
  assert.throws(
    () => parseKeys('/x/api-key', damaged),
    (error: Error) => /\/x\/api-key:2 is no API key/.test(error.message) && !error.message.includes('almost'),
  );
  assert.throws(() => parseKeys('/x/api-key', '# nothing\n\n'), /holds no API key/);
});
