/**
 * The job `image-pull`: one JSON request on stdin, progress as NDJSON on stdout, the outcome as its last line.
 *
 * A process of its own, because it decompresses, hashes and parses what strangers made: it runs without privileges, can
 * be killed at any time, and takes nothing down with it. Files' owners in the disk come from the image, not from the
 * user that runs this. Exit code 0 after `done`, 1 after `error`. The protocol is described in docs/images.md.
 */
import { type Credentials, type ImageConfig, parsePlatform, parseReference, pullImage } from '@aenv/image';
import { runTool } from '@aenv/linux';
import { AenvError, type ErrorJson } from '@aenv/std';

interface JobInput {
  reference: string;
  /** Absolute path of the directory that the disk goes into. */
  destination: string;
  cacheDir: string;
  diskSizeMb: number;
  credentials?: Credentials;
  /** `linux/amd64`; this machine's by default. */
  platform?: string;
  insecureRegistries?: string[];
}

type JobEvent =
  | { event: 'progress'; step: string; layer?: string; completedBytes: number; totalBytes: number }
  | { event: 'done'; digest: string; diskPath: string; config: ImageConfig; sizeBytes: number }
  | ({ event: 'error' } & ErrorJson);

const MAX_INPUT_BYTES = 1 << 20;
const MAX_DISK_MB = 16 << 20;
/** Between two progress lines of the same step. */
const PROGRESS_INTERVAL_MS = 100;

function emit(event: JobEvent): void {
  process.stdout.write(`${JSON.stringify(event)}\n`);
}

async function readInput(): Promise<JobInput> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of process.stdin) {
    parts.push(chunk);
    bytes += chunk.length;
    if (bytes > MAX_INPUT_BYTES) throw new AenvError('bad_request', 'the request is larger than 1 MiB');
  }
  let value: unknown;
  try {
    value = JSON.parse(Buffer.concat(parts).toString('utf8'));
  } catch (error) {
    throw new AenvError('bad_request', 'the request is not valid JSON', { cause: error });
  }
  return checkInput(value);
}

function checkInput(value: unknown): JobInput {
  const input = (typeof value === 'object' && value !== null ? value : {}) as Partial<JobInput>;
  const { reference, destination, cacheDir, diskSizeMb, credentials, platform, insecureRegistries } = input;
  requireField(typeof reference === 'string', 'reference must be a string');
  requireField(isAbsolutePath(destination), 'destination must be an absolute path');
  requireField(isAbsolutePath(cacheDir), 'cacheDir must be an absolute path');
  const isSize = Number.isInteger(diskSizeMb) && Number(diskSizeMb) > 0 && Number(diskSizeMb) <= MAX_DISK_MB;
  requireField(isSize, `diskSizeMb must be a whole number from 1 to ${MAX_DISK_MB}`);
  const hasPair = typeof credentials?.username === 'string' && typeof credentials.password === 'string';
  requireField(credentials === undefined || hasPair, 'credentials must have username and password');
  requireField(platform === undefined || typeof platform === 'string', 'platform must be a string');
  const isList = Array.isArray(insecureRegistries) && insecureRegistries.every((name) => typeof name === 'string');
  requireField(insecureRegistries === undefined || isList, 'insecureRegistries must be a list of strings');
  return input as JobInput;
}

function isAbsolutePath(value: unknown): boolean {
  return typeof value === 'string' && value.startsWith('/') && !value.includes('\0');
}

function requireField(isRight: boolean, message: string): void {
  if (!isRight) throw new AenvError('bad_request', message);
}

/** A line for the first, the last and at most every tenth of a second's progress of each step. */
function progressReporter() {
  const last = new Map<string, number>();
  return (progress: { step: string; layer?: string; completedBytes: number; totalBytes: number }) => {
    const key = `${progress.step} ${progress.layer ?? ''}`;
    const now = performance.now();
    const isLast = progress.completedBytes >= progress.totalBytes;
    if (!isLast && now - (last.get(key) ?? Number.NEGATIVE_INFINITY) < PROGRESS_INTERVAL_MS) return;
    last.set(key, now);
    emit({ event: 'progress', ...progress });
  };
}

async function main(signal: AbortSignal): Promise<void> {
  const input = await readInput();
  const pulled = await pullImage({
    reference: parseReference(input.reference),
    destination: input.destination,
    cacheDir: input.cacheDir,
    diskSizeMb: input.diskSizeMb,
    credentials: input.credentials,
    platform: input.platform === undefined ? undefined : parsePlatform(input.platform),
    insecureRegistries: input.insecureRegistries,
    runTool,
    onProgress: progressReporter(),
    signal,
  });
  emit({ event: 'done', ...pulled });
}

const stop = new AbortController();
for (const name of ['SIGTERM', 'SIGINT'] as const) {
  process.once(name, () => stop.abort(new AenvError('shutting_down', 'the pull was stopped')));
}
// Whoever started the job is gone; there is nobody to report to.
process.stdout.on('error', () => stop.abort(new AenvError('shutting_down', 'the pull was abandoned')));
try {
  await main(stop.signal);
} catch (error) {
  emit({ event: 'error', ...AenvError.from(error).toJSON() });
  process.exitCode = 1;
}
