/** What a build boots from: the disk of an image, pulled by an unprivileged job, or the disk of another build. */
import type { DiskBase } from '@aenv/snapshot';
import { AenvError, type ErrorJson, Singleflight } from '@aenv/std';
import type { RegistryCredentials } from './engine.ts';
import type { Context } from './options.ts';
import type { BuildRow, GuestSettings } from './template-table.ts';

export interface Base {
  disk: DiskBase;
  guest: Omit<GuestSettings, 'initKey'>;
  /** Digest of the image's manifest; absent for the disk of a build. */
  digest?: string;
}

export interface ImageRequest {
  reference: string;
  diskMb: number;
  credentials?: RegistryCredentials;
}

/** One step of a pull, as the job reports it. */
export interface PullProgress {
  step: string;
  completedBytes: number;
  totalBytes: number;
}

/** The last line of the image job; see docs/images.md. */
interface PullDone {
  event: 'done';
  digest: string;
  diskPath: string;
  config: { env: Record<string, string>; workingDir: string; user: string };
}

type PullEvent = ({ event: 'progress' } & PullProgress) | PullDone | ({ event: 'error' } & ErrorJson);

const PULL_TIMEOUT_MS = 60 * 60_000;

export class BaseDisks {
  readonly #context: Context;
  readonly #pulls = new Singleflight<Base>();

  constructor(context: Context) {
    this.#context = context;
  }

  /** Pulls what is not cached yet. Callers with the same request share one pull; the first one's hears the progress. */
  fromImage(request: ImageRequest, onProgress: (progress: PullProgress) => void): Promise<Base> {
    return this.#pulls.run(JSON.stringify(request), () => this.#pull(request, onProgress));
  }

  async #pull(request: ImageRequest, onProgress: (progress: PullProgress) => void): Promise<Base> {
    const { launcher, home } = this.#context;
    let last: PullDone | ({ event: 'error' } & ErrorJson) | undefined;
    const result = await launcher.run(
      {
        tool: 'image-pull',
        args: [],
        stdin: JSON.stringify({
          reference: request.reference,
          destination: home.imageDisks,
          cacheDir: home.imageCache,
          diskSizeMb: request.diskMb,
          ...(request.credentials ? { credentials: request.credentials } : {}),
        }),
        timeoutMs: PULL_TIMEOUT_MS,
      },
      {
        onLine: (line) => {
          const event = JSON.parse(line) as PullEvent;
          if (event.event === 'progress') onProgress(event);
          else last = event;
        },
      },
    );
    if (last?.event === 'error') throw AenvError.fromJSON(last);
    if (!last) throw pullDied(result.code, result.signal, result.stderr);
    await launcher.seal(last.diskPath);
    return {
      digest: last.digest,
      disk: { path: last.diskPath, format: 'raw', sizeMb: request.diskMb, parents: [last.diskPath] },
      guest: { env: last.config.env, user: userOf(last.config.user), workdir: last.config.workingDir },
    };
  }

  /** The disk of a ready build, with room for `diskMb` at least. */
  async fromBuild(build: BuildRow, diskMb: number): Promise<Base> {
    if (build.status !== 'ready' || !build.guest) {
      throw new AenvError('conflict', `the build of template '${build.templateId}' is ${build.status}, not ready`);
    }
    const { templateStore } = this.#context;
    const { disk } = await templateStore.manifest(build.id);
    const { initKey: _, ...guest } = build.guest;
    return {
      disk: {
        path: disk.path,
        format: 'qcow2',
        sizeMb: Math.max(disk.sizeMb, diskMb),
        parents: [...disk.parents, disk.path],
      },
      guest,
    };
  }
}

/** An image's `User` may name a group as well; processes get the groups of their user. */
function userOf(user: string): string {
  return user.split(':', 1)[0] || 'root';
}

function pullDied(code: number | null, signal: string | null, stderr: string): AenvError {
  const how = signal === null ? `with code ${code}` : `by ${signal}`;
  return new AenvError('internal', `the image job ended ${how}: ${stderr.trim().slice(-500)}`);
}
