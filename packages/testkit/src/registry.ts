/**
 * A real OCI registry for tests: Debian's `docker-registry` on a free loopback port, with storage of its own, and skopeo
 * to fill it. Each registry is one child process, ended by its pid.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { pollUntil } from '@aenv/std';

const run = promisify(execFile);

/** What a registry with `auth` accepts. */
export const REGISTRY_CREDENTIALS = { username: 'tester', password: 'correct horse' };
/** bcrypt of the password above, which is all that docker-registry takes. */
const HTPASSWD = 'tester:$2b$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2\n';

const START_TIMEOUT_MS = 15_000;

export interface TestRegistry extends AsyncDisposable {
  /** `127.0.0.1:PORT`, as it goes into image references. */
  host: string;
  pid: number;
  /** Where it keeps its blobs, to damage them: `docker/registry/v2/blobs/…`. */
  storage: string;
  /**
   * Copies an image into the registry; returns the reference to pull it by.
   * @param source a skopeo source such as `oci:/path/of/layout:tag`
   * @param image `name:tag`
   */
  push(source: string, image: string): Promise<string>;
  stop(): Promise<void>;
}

export interface RegistryOptions {
  /** Ask for REGISTRY_CREDENTIALS (HTTP Basic). */
  auth?: boolean;
}

/** Why no registry can be started here; undefined when all is well. For `t.skip`. */
export function registryMissing(): string | undefined {
  const missing = ['docker-registry', 'skopeo'].filter((name) => !isInstalled(name));
  return missing.length === 0 ? undefined : `not installed: ${missing.join(', ')}`;
}

export function isInstalled(program: string): boolean {
  const directories = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  return directories.some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

export async function startRegistry({ auth = false }: RegistryOptions = {}): Promise<TestRegistry> {
  const directory = await mkdtemp(join(tmpdir(), 'aenv-registry-'));
  const storage = join(directory, 'storage');
  const config = join(directory, 'config.json');
  // JSON is YAML.
  await writeFile(config, JSON.stringify(registryConfig(storage, auth ? join(directory, 'htpasswd') : undefined)));
  if (auth) await writeFile(join(directory, 'htpasswd'), HTPASSWD);
  const child = spawn('docker-registry', ['serve', config], { stdio: ['ignore', 'ignore', 'pipe'] });
  const stop = async () => {
    await stopChild(child);
    await rm(directory, { recursive: true, force: true });
  };
  try {
    const host = await listeningAddress(child);
    const push = (source: string, image: string) => pushImage(source, `${host}/${image}`, auth);
    return { host, pid: child.pid as number, storage, push, stop, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function registryConfig(storage: string, htpasswd: string | undefined): object {
  return {
    version: 0.1,
    log: { level: 'info', formatter: 'json', accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: storage } },
    http: { addr: '127.0.0.1:0' },
    ...(htpasswd === undefined ? {} : { auth: { htpasswd: { realm: 'test', path: htpasswd } } }),
  };
}

/** The registry picks a free port and says which in its log. */
async function listeningAddress(child: ChildProcess): Promise<string> {
  let log = '';
  let failure: string | undefined;
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-10_000);
  });
  child.on('error', (error) => {
    failure = error.message;
  });
  return pollUntil(
    'the start of docker-registry',
    () => {
      if (failure !== undefined || child.exitCode !== null) throw new Error(`docker-registry ended: ${failure ?? log}`);
      return /listening on (127\.0\.0\.1:\d+)/.exec(log)?.[1];
    },
    { intervalMs: 10, timeoutMs: START_TIMEOUT_MS },
  );
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

async function pushImage(source: string, target: string, auth: boolean): Promise<string> {
  const { username, password } = REGISTRY_CREDENTIALS;
  const credentials = auth ? ['--dest-creds', `${username}:${password}`] : [];
  const args = ['copy', '--quiet', '--all', '--preserve-digests', '--insecure-policy', '--dest-tls-verify=false'];
  await run('skopeo', [...args, ...credentials, source, `docker://${target}`]);
  return target;
}
