/** API keys: one file below AENV_HOME with a key per line, made with one fresh key at the first start. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { chmod, mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AenvError, isSystemError, newApiKey, writeFileAtomic } from '@aenv/std';

/** `e2b_` and 40 hex digits: E2B's SDKs check the shape before they send it. */
const KEY = /^e2b_[0-9a-f]{40}$/;

export interface ApiKeys {
  /** The file that holds them, mode 0600. */
  file: string;
  /** True when this start made the file. */
  created: boolean;
  /** Takes as long for a wrong key as for a right one. */
  isApiKey(key: string): boolean;
}

export const apiKeyFile = (home: string): string => join(home, 'secrets', 'api-key');

function digest(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

/** Keys of the text: one a line, `#` starts a comment. `config_invalid` names the line, never the key. */
export function parseKeys(file: string, text: string): string[] {
  const lines = text.split('\n').map((line) => line.replace(/#.*/, '').trim());
  for (const [index, line] of lines.entries()) {
    if (line !== '' && !KEY.test(line)) {
      throw new AenvError('config_invalid', `${file}:${index + 1} is no API key`, {
        remedy: 'A key is e2b_ and 40 hex digits (0-9a-f); delete the file to get a fresh one at the next start.',
      });
    }
  }
  const keys = lines.filter((line) => line !== '');
  if (keys.length > 0) return keys;
  throw new AenvError('config_invalid', `${file} holds no API key`, {
    remedy: 'Put one in, or delete the file to get a fresh one at the next start.',
  });
}

async function readOrCreate(file: string): Promise<{ text: string; created: boolean }> {
  try {
    const text = await readFile(file, 'utf8');
    // Whoever made it readable for others by accident should not keep it so.
    await chmod(file, 0o600);
    return { text, created: false };
  } catch (error) {
    if (!isSystemError(error, 'ENOENT')) throw error;
  }
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const text = `${newApiKey()}\n`;
  await writeFileAtomic(file, text, { mode: 0o600 });
  return { text, created: true };
}

export async function loadApiKeys(home: string): Promise<ApiKeys> {
  const file = apiKeyFile(home);
  const { text, created } = await readOrCreate(file);
  // Only digests stay in memory; comparing those of equal length tells nothing about the key.
  const digests = parseKeys(file, text).map(digest);
  return {
    file,
    created,
    isApiKey(key) {
      const given = digest(key);
      let known = false;
      for (const each of digests) known = timingSafeEqual(each, given) || known;
      return known;
    },
  };
}
