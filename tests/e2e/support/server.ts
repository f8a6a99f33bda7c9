/** A server of one's own: its own home, a free port of loopback, ended by pid with everything that it started. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const SERVER = new URL('../../../bin/aenv-server', import.meta.url).pathname;
const START_TIMEOUT_MS = 60_000;

export interface ServerHandle {
  readonly url: string;
  readonly apiKey: string;
  readonly home: string;
  readonly pid: number;
  /** Ends the server as an operator does; VMs run on. */
  stop(): Promise<void>;
  /** Ends the server as a crash does. */
  kill(): Promise<void>;
  /** Starts again on the same home and port. */
  start(): Promise<void>;
  /** Removes everything: sandboxes, templates, processes, the home. */
  destroy(): Promise<void>;
  /** Calls the API; the body is JSON both ways. */
  call(method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown; headers: Headers }>;
  log(): Promise<string>;
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

/** Starts a server; `env` adds to its environment. */
export async function startServer(env: Record<string, string> = {}): Promise<ServerHandle> {
  const home = await mkdtemp(join(tmpdir(), 'aenv-e2e-'));
  const server = new TestServer(home, await freePort(), env);
  try {
    await server.start();
  } catch (error) {
    await rm(home, { recursive: true, force: true });
    throw error;
  }
  return server;
}

class TestServer implements ServerHandle {
  readonly url: string;
  readonly home: string;
  apiKey = '';
  readonly #env: NodeJS.ProcessEnv;
  readonly #logFile: string;
  #child: ChildProcess | undefined;

  constructor(home: string, port: number, env: Record<string, string>) {
    this.home = home;
    this.url = `http://127.0.0.1:${port}`;
    this.#logFile = join(home, 'server.log');
    // VMs that only wait would be counted as somebody's; tests of the pool ask for it.
    this.#env = { ...process.env, AENV_POOL_SIZE: '0', ...env, AENV_HOME: home, AENV_LISTEN: `127.0.0.1:${port}` };
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  async start(): Promise<void> {
    const out = openSync(this.#logFile, 'a');
    this.#child = spawn(SERVER, [], { env: this.#env, stdio: ['ignore', out, out] });
    closeSync(out);
    const end = Date.now() + START_TIMEOUT_MS;
    while (!(await this.#healthy())) {
      if (this.#child.exitCode !== null || Date.now() > end) {
        this.#child.kill('SIGKILL');
        throw new Error(`the server did not start:\n${await this.log()}`);
      }
      await sleep(50);
    }
    this.apiKey = (await readFile(join(this.home, 'secrets', 'api-key'), 'utf8')).trim();
  }

  async #healthy(): Promise<boolean> {
    try {
      return (await fetch(`${this.url}/health`)).ok;
    } catch {
      return false;
    }
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  }

  stop(): Promise<void> {
    return this.#end('SIGTERM');
  }

  kill(): Promise<void> {
    return this.#end('SIGKILL');
  }

  async destroy(): Promise<void> {
    try {
      if (!(await this.#healthy())) await this.start();
      const { body } = await this.call('GET', '/v2/sandboxes?state=running,paused');
      for (const { sandboxID } of body as { sandboxID: string }[]) await this.call('DELETE', `/sandboxes/${sandboxID}`);
    } finally {
      await this.stop();
      await untilLauncherIsGone(this.home);
      await rm(this.home, { recursive: true, force: true });
    }
  }

  async call(method: string, path: string, body?: unknown) {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: { 'X-API-Key': this.apiKey, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      body: text === '' ? undefined : (JSON.parse(text) as unknown),
      headers: response.headers,
    };
  }

  log(): Promise<string> {
    return readFile(this.#logFile, 'utf8');
  }
}

/** Processes whose command line names `text`. */
export function processesWith(text: string): string[] {
  try {
    return execFileSync('pgrep', ['-fa', '--', text], { encoding: 'utf8' })
      .split('\n')
      .filter((line) => line !== '' && !line.includes('pgrep'));
  } catch {
    return [];
  }
}

/** The launcher ends by itself once it has neither clients nor VMs. */
async function untilLauncherIsGone(home: string): Promise<void> {
  const end = Date.now() + 15_000;
  for (;;) {
    const left = processesWith(home);
    if (left.length === 0) return;
    if (Date.now() > end) throw new Error(`still running for ${home}:\n${left.join('\n')}`);
    await sleep(200);
  }
}
