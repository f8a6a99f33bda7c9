/** Which server the CLI talks to, and with which key. */
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { AenvError, isSystemError, writeFileAtomic } from '@aenv/std';

export interface ServerAccess {
  url: string;
  apiKey: string;
}

export const DEFAULT_URL = 'http://127.0.0.1:8000';

const LOGIN_REMEDY = 'Run `aenv auth`, or set AENV_URL and AENV_API_KEY.';

export function credentialsFile(): string {
  const config = process.env.XDG_CONFIG_HOME || join(homedir(), '.config');
  return join(config, 'aenv', 'credentials');
}

/** `http://host:port` without a path; `bad_request` for anything else. */
export function checkedUrl(text: string): string {
  const url = URL.parse(text);
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.pathname !== '/' || url.search || url.username) {
    throw new AenvError('bad_request', `${JSON.stringify(text)} is not the address of a server`, {
      remedy: `Write it like ${DEFAULT_URL}, without a path.`,
    });
  }
  return url.origin;
}

/** Two lines of TOML: `url = "…"` and `api_key = "…"`. */
function parse(text: string, file: string): ServerAccess {
  const values = new Map<string, string>();
  for (const line of text.split('\n')) {
    const match = /^\s*(url|api_key)\s*=\s*("(?:[^"\\]|\\.)*")\s*$/.exec(line);
    if (match?.[1] && match[2]) values.set(match[1], JSON.parse(match[2]) as string);
  }
  const url = values.get('url');
  const apiKey = values.get('api_key');
  if (url === undefined || apiKey === undefined) {
    throw new AenvError('config_invalid', `${file} does not hold a url and an api_key`, { remedy: LOGIN_REMEDY });
  }
  return { url: checkedUrl(url), apiKey };
}

/** Undefined when there is no such file. A file that others may read is refused. */
function readCredentials(): ServerAccess | undefined {
  const file = credentialsFile();
  try {
    if ((statSync(file).mode & 0o077) !== 0) {
      throw new AenvError('config_invalid', `${file} holds an API key and other users may read it`, {
        remedy: `Run \`chmod 600 ${file}\`.`,
      });
    }
    return parse(readFileSync(file, 'utf8'), file);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** The key of a server on this machine, for those who may read its state (root). */
function localKey(url: string): string | undefined {
  if (!['127.0.0.1', 'localhost', '[::1]'].includes(new URL(url).hostname)) return undefined;
  const home = process.env.AENV_HOME || '/var/lib/aenv';
  try {
    const text = readFileSync(join(home, 'secrets', 'api-key'), 'utf8');
    return /^[ \t]*(\S+)/m.exec(text.replaceAll(/#.*/g, ''))?.[1];
  } catch {
    return undefined;
  }
}

/**
 * AENV_URL and AENV_API_KEY win over the credentials file; on the server's own machine the file with its key is the last
 * resort. The key in the credentials file is never sent to another server than the one it was saved for.
 */
export function serverAccess(): ServerAccess {
  const saved = process.env.AENV_URL && process.env.AENV_API_KEY ? undefined : readCredentials();
  const url = process.env.AENV_URL ? checkedUrl(process.env.AENV_URL) : (saved?.url ?? DEFAULT_URL);
  const savedKey = saved?.url === url ? saved.apiKey : undefined;
  const apiKey = process.env.AENV_API_KEY || savedKey || localKey(url);
  if (apiKey === undefined) {
    throw new AenvError('unauthorized', `there is no API key for ${url}`, { remedy: LOGIN_REMEDY });
  }
  return { url, apiKey };
}

/** Mode 0600, in a directory of mode 0700. */
export async function saveCredentials({ url, apiKey }: ServerAccess): Promise<string> {
  const file = credentialsFile();
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const text = `url = ${JSON.stringify(url)}\napi_key = ${JSON.stringify(apiKey)}\n`;
  await writeFileAtomic(file, text, { mode: 0o600 });
  return file;
}
