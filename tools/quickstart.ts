/**
 * The main job once, from an image to a sandbox that goes away again, with the time of each step. Uses the server that
 * runs already, or starts one for the while. Everything that it makes is removed, also when a step fails.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { styleText } from 'node:util';
import { Sandbox, Template } from 'e2b';

const ROOT = join(import.meta.dirname, '..');
const HOME = process.env.AENV_HOME || '/var/lib/aenv';
const URL = process.env.AENV_URL || `http://${process.env.AENV_LISTEN || '127.0.0.1:8000'}`;
/** Readable for everybody: the server reads images as a user without rights. */
const DEBIAN_LAYOUT = '/var/cache/aenv/debian-image';
const SERVER_START_MS = 120_000;
const COUNTER = 'i=0; while :; do i=$((i+1)); echo $i > /tmp/counter; sleep 0.1; done';

const steps: { step: string; ms: number; result: string }[] = [];

/** Runs one step, prints what it did and how long it took. */
async function step<T>(name: string, work: () => Promise<T>, describe: (value: T) => string): Promise<T> {
  const start = performance.now();
  process.stdout.write(`${styleText('bold', name)} ... `);
  const value = await work();
  const ms = performance.now() - start;
  steps.push({ step: name, ms, result: describe(value) });
  process.stdout.write(`${describe(value)} (${seconds(ms)})\n`);
  return value;
}

function seconds(ms: number): string {
  return ms < 1000 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

async function healthy(): Promise<boolean> {
  try {
    return (await fetch(`${URL}/health`, { signal: AbortSignal.timeout(2000) })).ok;
  } catch {
    return false;
  }
}

/** Starts a server and waits until it answers; throws with the end of its log when it does not. */
async function startServer(): Promise<ChildProcess> {
  const logFile = join(tmpdir(), `aenv-quickstart-${process.pid}.log`);
  const log = openSync(logFile, 'w');
  const server = spawn(join(ROOT, 'bin/aenv-server'), [], { stdio: ['ignore', log, log] });
  closeSync(log);
  try {
    const end = Date.now() + SERVER_START_MS;
    while (!(await healthy())) {
      if (server.exitCode !== null || Date.now() > end) {
        const tail = readFileSync(logFile, 'utf8').trim().split('\n').slice(-15).join('\n');
        throw new Error(`the server did not start:\n${tail}`);
      }
      await sleep(50);
    }
    return server;
  } catch (error) {
    await stopServer(server);
    throw error;
  } finally {
    rmSync(logFile, { force: true });
  }
}

async function stopServer(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const exited = once(server, 'exit');
  server.kill('SIGTERM');
  await exited;
}

function apiKey(): string {
  if (process.env.AENV_API_KEY) return process.env.AENV_API_KEY;
  const file = join(HOME, 'secrets/api-key');
  try {
    return readFileSync(file, 'utf8').replaceAll(/#.*/g, '').trim().split(/\s+/)[0] ?? '';
  } catch {
    throw new Error(`the API key of the server at ${URL} is not in ${file}; set AENV_API_KEY (or AENV_HOME)`);
  }
}

/** Docker Hub asks for a token (401) where it is reachable. */
async function dockerHubAnswers(): Promise<boolean> {
  try {
    const response = await fetch('https://registry-1.docker.io/v2/', { signal: AbortSignal.timeout(5000) });
    await response.body?.cancel();
    return response.status === 401 || response.ok;
  } catch {
    return false;
  }
}

async function chooseImage(): Promise<string> {
  if (await dockerHubAnswers()) return 'ubuntu:22.04';
  process.stdout.write('no Docker Hub here, so a Debian from the Debian mirror (half a minute when it is new) ... ');
  execFileSync(join(ROOT, 'tools/debian-image.sh'), [DEBIAN_LAYOUT], { stdio: ['ignore', 'ignore', 'inherit'] });
  return `oci:${DEBIAN_LAYOUT}:bookworm`;
}

async function deleteTemplate(id: string, key: string): Promise<void> {
  const response = await fetch(`${URL}/templates/${id}`, { method: 'DELETE', headers: { 'X-API-Key': key } });
  if (!response.ok && response.status !== 404)
    throw new Error(`DELETE /templates/${id} answered ${response.status}: ${await response.text()}`);
}

/** What a program in the sandbox has counted so far. */
async function counter(sandbox: Sandbox): Promise<number> {
  return Number(await sandbox.files.read('/tmp/counter'));
}

async function useSandbox(sandbox: Sandbox, connection: { apiKey: string }): Promise<void> {
  await step(
    'run a command',
    () => sandbox.commands.run('. /etc/os-release; echo "$PRETTY_NAME, Linux $(uname -r)"'),
    ({ stdout }) => stdout.trim(),
  );
  const bytes = new Uint8Array(randomBytes(1 << 20));
  await step(
    'write a file',
    () => sandbox.files.write('/tmp/data', bytes.buffer),
    ({ path }) => `${path}, 1 MiB`,
  );
  await step(
    'read it back',
    async () => {
      const read = await sandbox.files.read('/tmp/data', { format: 'bytes' });
      if (Buffer.compare(read, bytes) !== 0) throw new Error('the file came back with other bytes');
    },
    () => 'the same bytes',
  );
  const { pid } = await sandbox.commands.run(COUNTER, { background: true, timeoutMs: 0 });
  await sleep(1000);
  const before = await counter(sandbox);
  await step(
    'pause',
    () => sandbox.pause(),
    () => `a program in it had counted to ${before}`,
  );
  await step(
    'resume',
    () => sandbox.connect(),
    () => 'connected again',
  );
  await step(
    'see it go on',
    async () => {
      await sleep(500);
      const running = (await sandbox.commands.list()).some((process) => process.pid === pid);
      const after = await counter(sandbox);
      if (!running || after <= before || after > before + 300)
        throw new Error(`the program did not go on: it is at ${after} after ${before}`);
      return after;
    },
    (after) => `the same process counts on: ${after}`,
  );
  await step(
    'list',
    async () => {
      const found: string[] = [];
      for (const list = Sandbox.list(connection); list.hasNext; )
        found.push(...(await list.nextItems()).map(({ sandboxId }) => sandboxId));
      if (!found.includes(sandbox.sandboxId)) throw new Error('the sandbox is not in the list');
      return found.length;
    },
    (count) => `${count} sandbox${count === 1 ? '' : 'es'}`,
  );
}

/** From an image to a sandbox and back to nothing. */
async function mainJob(image: string, key: string): Promise<void> {
  const connection = { apiKey: key, apiUrl: URL, sandboxUrl: URL };
  const name = `quickstart-${randomBytes(4).toString('hex')}`;
  const built = await step(
    'image to template',
    () => Template.build(Template().fromImage(image), name, { ...connection, cpuCount: 1, memoryMB: 256 }),
    ({ templateId }) => templateId,
  );
  try {
    const sandbox = await step(
      'start a sandbox',
      () => Sandbox.create(name, { ...connection, timeoutMs: 600_000 }),
      ({ sandboxId }) => sandboxId,
    );
    try {
      await useSandbox(sandbox, connection);
    } finally {
      await step(
        'delete the sandbox',
        () => sandbox.kill(),
        () => 'gone',
      );
    }
  } finally {
    await step(
      'delete the template',
      () => deleteTemplate(built.templateId, key),
      () => 'gone',
    );
  }
}

function printSummary(): void {
  const width = Math.max(...steps.map((entry) => entry.step.length));
  const rows = steps.map(({ step, ms }) => `  ${step.padEnd(width)}  ${seconds(ms).padStart(8)}`);
  process.stdout.write(`\n${styleText('bold', 'How long it took')}\n${rows.join('\n')}\n`);
  process.stdout.write(
    [
      '',
      styleText('bold', 'Next'),
      '  make serve                       run the server in the foreground',
      '  npx aenv doctor                  look at this machine',
      '  npx aenv pull IMAGE              make a template from an image',
      '  npx aenv start TEMPLATE          start a sandbox and attach to it',
      '  README.md                        the same with the e2b SDK',
      '',
    ].join('\n'),
  );
}

const running = await healthy();
const started = running ? undefined : await step('start a server', startServer, () => `${URL}, state in ${HOME}`);
if (running) process.stdout.write(`using the server at ${URL}\n`);
try {
  const key = apiKey();
  const image = await step('choose an image', chooseImage, (reference) => reference);
  await mainJob(image, key);
  printSummary();
} catch (error) {
  process.stdout.write('\n');
  process.stderr.write(`quickstart: ${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
} finally {
  if (started) await stopServer(started);
}
