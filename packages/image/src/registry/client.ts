/**
 * The reading half of the OCI distribution API (opencontainers/distribution-spec v1.1) for one repository: manifests and
 * blobs, with retries, and blobs continued where a transfer broke off.
 */
import type { FileHandle } from 'node:fs/promises';
import { AenvError, sleep } from '@aenv/std';
import { verifyDigest } from '../digest.ts';
import { MANIFEST_TYPES, MAX_DOCUMENT_BYTES } from '../manifest.ts';
import type { RegistryReference } from '../reference.ts';
import { type AuthTarget, authorize, type Credentials, unauthorized } from './auth.ts';
import { type Answer, RegistryHttp, readBody, TransientError, unusable } from './http.ts';

const ATTEMPTS = 4;
const FIRST_WAIT_MS = 200;
const MAX_WAIT_MS = 10_000;

export interface RegistryClientOptions {
  credentials?: Credentials;
  /** `host` or `host:port` of registries that speak plain HTTP. Loopback addresses always do. */
  insecureRegistries: readonly string[];
  signal?: AbortSignal;
}

export interface BlobTransfer {
  digest: string;
  /** Bytes. */
  size: number;
  /** Called with the bytes that are in the file so far. */
  onBytes: (completed: number) => void;
}

export class RegistryClient {
  readonly #http = new RegistryHttp();
  readonly #target: AuthTarget;
  readonly #signal: AbortSignal | undefined;
  #authorization: string | undefined;

  constructor({ registry, repository }: RegistryReference, options: RegistryClientOptions) {
    const url = registryUrl(registry, options.insecureRegistries);
    this.#target = { http: this.#http, registry: url, repository, credentials: options.credentials };
    this.#signal = options.signal;
  }

  /** The document behind a tag or digest; a digest is verified. `image_not_found` when there is none. */
  async manifest(tagOrDigest: string): Promise<Buffer> {
    const url = this.#url('manifests', tagOrDigest);
    const what = `the manifest ${tagOrDigest} of ${this.#target.repository}`;
    const bytes = await this.#retrying(async () => {
      const answer = await this.#get(url, { accept: MANIFEST_TYPES.join(', ') });
      await this.#checkStatus(answer, url, [200]);
      return readBody(answer, url, MAX_DOCUMENT_BYTES);
    });
    if (tagOrDigest.includes(':')) verifyDigest(bytes, tagOrDigest, what);
    return bytes;
  }

  /** A blob that fits into memory, such as an image's configuration; verified. */
  async smallBlob(digest: string): Promise<Buffer> {
    const url = this.#url('blobs', digest);
    const bytes = await this.#retrying(async () => {
      const answer = await this.#get(url, {});
      await this.#checkStatus(answer, url, [200]);
      return readBody(answer, url, MAX_DOCUMENT_BYTES);
    });
    verifyDigest(bytes, digest, `the blob ${digest}`);
    return bytes;
  }

  /**
   * Writes a blob into `file` from byte `offset` on (what is before is there already). A transfer that breaks off is
   * continued by a range request. The digest is for the caller to verify; the size is not exceeded.
   */
  async blobToFile(transfer: BlobTransfer, file: FileHandle, offset: number): Promise<void> {
    let position = offset;
    transfer.onBytes(position);
    await this.#retrying(async (madeProgress) => {
      if (position === transfer.size) return;
      const { answer, start } = await this.#openBlob(transfer, position);
      position = start;
      for await (const chunk of this.#bodyOf(answer, transfer)) {
        if (position + chunk.length > transfer.size) throw wrongSize(transfer, 'more');
        await file.writev([chunk], position);
        position += chunk.length;
        madeProgress();
        transfer.onBytes(position);
      }
      if (position < transfer.size) throw new TransientError(this.#target.registry, 'the transfer ended too early');
    });
  }

  async close(): Promise<void> {
    await this.#http.close();
  }

  async #openBlob({ digest, size }: BlobTransfer, position: number): Promise<{ answer: Answer; start: number }> {
    const url = this.#url('blobs', digest);
    const answer = await this.#get(url, position > 0 ? { range: `bytes=${position}-` } : {});
    await this.#checkStatus(answer, url, [200, 206]);
    // A server may ignore the range, or answer with another one.
    const range = answer.headers['content-range'];
    const isContinuation = answer.status === 206 && typeof range === 'string' && range.startsWith(`bytes ${position}-`);
    if (answer.status === 206 && !isContinuation) {
      answer.body.destroy();
      throw unusable(url, 'it answers a range request with another range');
    }
    const start = isContinuation ? position : 0;
    const announced = Number(answer.headers['content-length'] ?? Number.NaN);
    if (announced + start > size) {
      answer.body.destroy();
      throw wrongSize({ digest, size }, 'more');
    }
    return { answer, start };
  }

  /** The body; a transfer that breaks is `registry_unavailable`. */
  async *#bodyOf(answer: Answer, { digest }: BlobTransfer): AsyncGenerator<Buffer> {
    const chunks: AsyncIterator<Buffer> = answer.body[Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await chunks.next().catch((error: unknown) => {
          this.#signal?.throwIfAborted();
          throw new TransientError(this.#target.registry, `the transfer of ${digest} broke off`, { cause: error });
        });
        if (next.done) return;
        yield next.value;
      }
    } finally {
      answer.body.destroy();
    }
  }

  /** GET with the credentials that the registry has asked for so far; answers a challenge once. */
  async #get(url: URL, headers: Record<string, string>): Promise<Answer> {
    const send = () =>
      this.#http.get(url, {
        headers: this.#authorization ? { ...headers, authorization: this.#authorization } : headers,
        signal: this.#signal,
      });
    const answer = await send();
    if (answer.status !== 401) return answer;
    answer.body.destroy();
    this.#authorization = await authorize(this.#target, answer, this.#signal);
    return send();
  }

  async #checkStatus(answer: Answer, url: URL, expected: number[]): Promise<void> {
    const { status } = answer;
    if (expected.includes(status)) return;
    answer.body.destroy();
    if (status === 401 || status === 403) throw unauthorized(this.#target);
    if (status === 404) throw this.#notFound(url);
    if (status === 429 || status >= 500) throw busy(url, status, answer.headers['retry-after']);
    throw new AenvError('registry_unavailable', `${url.host} answers ${url.pathname} with status ${status}`);
  }

  #notFound(url: URL): AenvError {
    const { registry, repository } = this.#target;
    const wanted = url.pathname.split('/').at(-1);
    return new AenvError('image_not_found', `${registry.host} has no ${repository} with ${wanted}`, {
      remedy: 'Check the name and the tag.',
    });
  }

  /** Tries again what failed for want of a connection. Attempts that brought bytes are not counted. */
  async #retrying<T>(attempt: (madeProgress: () => void) => Promise<T>): Promise<T> {
    let failures = 0;
    for (;;) {
      try {
        return await attempt(() => {
          failures = 0;
        });
      } catch (error) {
        this.#signal?.throwIfAborted();
        failures += 1;
        if (!(error instanceof TransientError) || failures >= ATTEMPTS) throw error;
        await sleep(Math.min(Math.max(error.waitMs, FIRST_WAIT_MS * 2 ** failures), MAX_WAIT_MS), this.#signal);
      }
    }
  }

  #url(kind: 'manifests' | 'blobs', name: string): URL {
    return new URL(`/v2/${this.#target.repository}/${kind}/${name}`, this.#target.registry);
  }
}

/** The registry is there but asks for patience. */
function busy(url: URL, status: number, retryAfter: unknown): TransientError {
  const waitMs = Number(retryAfter) > 0 ? Number(retryAfter) * 1000 : 0;
  if (status !== 429) return new TransientError(url, `it answers with status ${status}`, { waitMs });
  const remedy = 'Wait, or pass credentials: registered users have a higher limit.';
  return new TransientError(url, 'it allows no more requests for now', { remedy, waitMs });
}

function wrongSize({ digest, size }: { digest: string; size: number }, how: string): AenvError {
  return new AenvError('image_invalid', `the blob ${digest} has ${how} than the announced ${size} bytes`, {
    remedy: 'The registry delivers something else than the manifest says: push the image again.',
  });
}

function registryUrl(registry: string, insecure: readonly string[]): URL {
  if (registry === 'docker.io') return new URL('https://registry-1.docker.io');
  const { hostname } = new URL(`http://${registry}`);
  const isLoopback = hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
  return new URL(`${isLoopback || insecure.includes(registry) ? 'http' : 'https'}://${registry}`);
}
