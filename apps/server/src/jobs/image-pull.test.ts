import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { addToLayout, packTar } from '@aenv/testkit';

const SCRIPT = new URL('./image-pull.ts', import.meta.url).pathname;
const isRoot = process.getuid?.() === 0;
/** Any user but root, where the job can read its own program as such. */
const JOB_UID = 61_234;
const runsUnprivileged = isRoot && canRead(SCRIPT);

interface JobEvent {
  event: string;
  step?: string;
  code?: string;
  message?: string;
  remedy?: string;
  digest?: string;
  diskPath?: string;
  completedBytes?: number;
}

interface RunningJob {
  child: ChildProcess;
  events: JobEvent[];
  ended: Promise<number | null>;
}

function canRead(path: string): boolean {
  try {
    execFileSync('setpriv', [
      `--reuid=${JOB_UID}`,
      `--regid=${JOB_UID}`,
      '--clear-groups',
      process.execPath,
      '-e',
      `fs.accessSync('${path}')`,
    ]);
    return true;
  } catch {
    return false;
  }
}

function newDirectory(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'aenv-job-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  chmodSync(directory, 0o777);
  return directory;
}

function startJob(t: TestContext, input: unknown): RunningJob {
  const ids = runsUnprivileged ? { uid: JOB_UID, gid: JOB_UID } : {};
  const child = spawn(process.execPath, [SCRIPT], {
    ...ids,
    cwd: '/',
    env: { PATH: '' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const events: JobEvent[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => events.push(JSON.parse(line)));
  // A job that has refused its input ends before it has read all of it.
  child.stdin.on('error', () => {});
  child.stdin.end(typeof input === 'string' ? input : JSON.stringify(input));
  return { child, events, ended: once(child, 'close').then(([code]) => code) };
}

/** Runs the job; returns its last line. */
async function runJob(t: TestContext, input: unknown): Promise<JobEvent & { exitCode: number | null }> {
  const { events, ended } = startJob(t, input);
  const exitCode = await ended;
  return { ...(events.at(-1) as JobEvent), exitCode };
}

async function waitFor(job: RunningJob, condition: (event: JobEvent) => boolean): Promise<void> {
  while (!job.events.some(condition)) {
    assert.equal(job.child.exitCode, null, `the job ended: ${JSON.stringify(job.events)}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function inputFor(directory: string, reference: string, more: object = {}): object {
  return {
    reference,
    destination: join(directory, 'disks'),
    cacheDir: join(directory, 'cache'),
    diskSizeMb: 32,
    ...more,
  };
}

const TAR = packTar([
  { path: 'bin/tool', content: '#!/bin/sh\n', mode: 0o4755, uid: 7, gid: 8 },
  { path: 'big', content: randomBytes(3 << 20) },
]);

/** Serves a layout as a registry; bodies of layers stop after `limit` bytes while it is set. */
async function serveLayout(t: TestContext, layout: string) {
  const state = { limit: Number.POSITIVE_INFINITY, ranges: [] as (string | undefined)[] };
  const index = JSON.parse(await readFile(join(layout, 'index.json'), 'utf8'));
  const server = createServer(async (request, response) => {
    const digest = /sha256:([0-9a-f]{64})/.exec(request.url ?? '')?.[1] ?? index.manifests[0].digest.slice(7);
    const bytes = await readFile(join(layout, 'blobs', 'sha256', digest));
    const { range } = request.headers;
    const start = Number(/bytes=(\d+)-/.exec(range ?? '')?.[1] ?? 0);
    if (bytes.length > 100_000) state.ranges.push(range);
    if (start > 0) response.setHeader('content-range', `bytes ${start}-${bytes.length - 1}/${bytes.length}`);
    response.writeHead(start > 0 ? 206 : 200, { 'content-length': bytes.length - start });
    const part = bytes.subarray(start, Math.min(bytes.length, start + state.limit));
    response.write(part);
    if (start + part.length === bytes.length) response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, state };
}

test('an image becomes a disk whose files have the owners that the image gives them', async (t) => {
  if (!runsUnprivileged)
    t.diagnostic('not run as root, or in a place that others cannot read: the job runs as this user');
  const directory = newDirectory(t);
  const digest = await addToLayout(join(directory, 'layout'), 'x', { layers: [{ tar: TAR }] });
  const job = startJob(t, inputFor(directory, `oci:${join(directory, 'layout')}:x`));
  assert.equal(await job.ended, 0);
  const done = job.events.at(-1) as JobEvent;
  assert.deepEqual([done.event, done.digest], ['done', digest]);
  assert.ok(
    job.events.slice(0, -1).every(({ event, completedBytes }) => event === 'progress' && completedBytes !== undefined),
  );
  const env = { PATH: '/usr/sbin:/sbin:/usr/bin:/bin' };
  const stat = execFileSync('debugfs', ['-R', 'stat /bin/tool', done.diskPath as string], {
    env,
    stdio: 'pipe',
  }).toString();
  assert.match(stat, /Mode: +04755/);
  assert.match(stat, /User: +7 +Group: +8/);
  if (runsUnprivileged) assert.equal(statSync(done.diskPath as string).uid, JOB_UID);
});

test('killed in the middle of a download, the next job goes on from there', async (t) => {
  const directory = newDirectory(t);
  const layout = join(directory, 'layout');
  await addToLayout(layout, 'x', { layers: [{ tar: TAR }] });
  const { host, state } = await serveLayout(t, layout);
  state.limit = 1_000_000;
  const job = startJob(t, inputFor(directory, `${host}/app:x`));
  await waitFor(job, ({ step }) => step === 'layer');
  const blobs = join(directory, 'cache/blobs/sha256');
  const bytesThere = () => readdirSync(blobs).map((name) => statSync(join(blobs, name)).size);
  while (!bytesThere().includes(state.limit)) await new Promise((resolve) => setTimeout(resolve, 5));
  job.child.kill('SIGKILL');
  await job.ended;
  state.limit = Number.POSITIVE_INFINITY;
  const { event, exitCode } = await runJob(t, inputFor(directory, `${host}/app:x`));
  assert.deepEqual([event, exitCode], ['done', 0]);
  assert.deepEqual(state.ranges, [undefined, 'bytes=1000000-']);
  assert.ok(readdirSync(blobs).every((name) => !name.endsWith('.part')));
});

test('killed while the disk is written, it leaves no disk, and the next job clears up', async (t) => {
  const directory = newDirectory(t);
  const layout = join(directory, 'layout');
  const tar = packTar([{ path: 'big', content: randomBytes(64 << 20) }]);
  await addToLayout(layout, 'x', { layers: [{ tar, compression: 'none' }] });
  const input = inputFor(directory, `oci:${layout}`, { diskSizeMb: 128 });
  const job = startJob(t, input);
  await waitFor(job, ({ step }) => step === 'layer');
  const disks = join(directory, 'disks');
  while (readdirSync(disks).length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  job.child.kill('SIGKILL');
  await job.ended;
  assert.ok(
    readdirSync(disks).every((name) => name.endsWith('.part')),
    'nothing that looks like a disk',
  );
  const { event } = await runJob(t, input);
  assert.equal(event, 'done');
  assert.deepEqual(
    readdirSync(disks).map((name) => name.endsWith('.ext4')),
    [true],
  );
});

test('asked to stop, it says so and leaves nothing in the directory of disks', async (t) => {
  const directory = newDirectory(t);
  const layout = join(directory, 'layout');
  await addToLayout(layout, 'x', { layers: [{ tar: TAR }] });
  const { host, state } = await serveLayout(t, layout);
  state.limit = 1_000_000;
  const job = startJob(t, inputFor(directory, `${host}/app:x`));
  await waitFor(job, ({ step }) => step === 'layer');
  job.child.kill('SIGTERM');
  assert.equal(await job.ended, 1);
  const last = job.events.at(-1) as JobEvent;
  assert.deepEqual([last.event, last.code], ['error', 'shutting_down']);
  assert.deepEqual(readdirSync(join(directory, 'disks')), []);
});

for (const [part, size] of [
  ['disks', '1m'],
  ['cache', '1m'],
] as const) {
  test(`no space for the ${part}`, { skip: !isRoot && 'needs root to mount a small file system' }, async (t) => {
    const directory = newDirectory(t);
    const layout = join(directory, 'layout');
    await addToLayout(layout, 'x', { layers: [{ tar: TAR }] });
    const { host } = await serveLayout(t, layout);
    const small = join(directory, part);
    mkdirSync(small);
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=0777`, 'tmpfs', small]);
    try {
      const { code, remedy, exitCode } = await runJob(t, inputFor(directory, `${host}/app:x`));
      assert.deepEqual([code, exitCode], ['disk_full', 1]);
      assert.match(remedy ?? '', /Free space/);
      const left = readdirSync(small, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
      assert.deepEqual(
        left.map(({ name }) => name),
        [],
      );
    } finally {
      execFileSync('umount', [small]);
    }
  });
}

const GOOD = { reference: 'a', destination: '/nonexistent/d', cacheDir: '/nonexistent/c', diskSizeMb: 10 };
const BAD: Record<string, unknown> = {
  'no JSON': '{',
  nothing: '',
  'an array': [],
  'no reference': { ...GOOD, reference: undefined },
  'a relative destination': { ...GOOD, destination: 'd' },
  'a size of nothing': { ...GOOD, diskSizeMb: 0 },
  'a size that is text': { ...GOOD, diskSizeMb: '10' },
  'half of the credentials': { ...GOOD, credentials: { username: 'u' } },
  'a strange platform': { ...GOOD, platform: 'windows' },
  'too much': JSON.stringify({ ...GOOD, reference: 'x'.repeat(1 << 21) }),
};

test('requests that are wrong', { concurrency: 2 }, async (t) => {
  for (const [name, input] of Object.entries(BAD)) {
    await t.test(name, async () => {
      const { event, code, message, exitCode } = await runJob(t, input);
      assert.deepEqual([event, code, exitCode], ['error', 'bad_request', 1], message);
    });
  }
  await t.test('a reference that is none', async () => {
    const { code, remedy } = await runJob(t, { ...GOOD, reference: 'A B' });
    assert.equal(code, 'image_reference_invalid');
    assert.ok(remedy);
  });
});
