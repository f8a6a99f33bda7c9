/** HTTP to registries: plain requests with bounded time, typed errors, and redirects that never carry credentials away. */
import type { Readable } from 'node:stream';
import { AenvError } from '@aenv/std';
import { Agent, type Dispatcher, request } from 'undici';

const CONNECT_TIMEOUT_MS = 10_000;
const HEADERS_TIMEOUT_MS = 30_000;
/** A transfer that stands still for so long has failed. */
const STALL_TIMEOUT_MS = 30_000;
const MAX_REDIRECTS = 5;
const CHECK = 'Check the name, the network and whether the registry is up, then try again.';

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Readable;
}

export interface RequestOptions {
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export class RegistryHttp {
  readonly #agent: Dispatcher = new Agent({
    connect: { timeout: CONNECT_TIMEOUT_MS },
    headersTimeout: HEADERS_TIMEOUT_MS,
    bodyTimeout: STALL_TIMEOUT_MS,
  });

  /** GET, following redirects. Rejects with `registry_unavailable`, a TransientError when nothing answers. */
  async get(url: URL, { headers = {}, signal }: RequestOptions): Promise<Answer> {
    let at = url;
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
      const answer = await this.#once(at, at.origin === url.origin ? headers : withoutCredentials(headers), signal);
      const location = answer.headers.location;
      if (![301, 302, 303, 307, 308].includes(answer.status) || typeof location !== 'string') return answer;
      answer.body.destroy();
      at = redirectTarget(location, at);
    }
    throw unusable(url, 'it redirects in circles');
  }

  async #once(url: URL, headers: Record<string, string>, signal: AbortSignal | undefined): Promise<Answer> {
    try {
      const answer = await request(url, { dispatcher: this.#agent, headers, signal });
      // A body that is given up fails; nobody listens then.
      answer.body.on('error', () => {});
      return { status: answer.statusCode, headers: answer.headers, body: answer.body };
    } catch (error) {
      signal?.throwIfAborted();
      throw new TransientError(url, error instanceof Error ? describe(error) : String(error), { cause: error });
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

/** Reads a small body; `image_invalid` when it is larger than `limit`. */
export async function readBody(answer: Answer, url: URL, limit: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of answer.body) {
      parts.push(chunk);
      bytes += chunk.length;
      if (bytes > limit)
        throw new AenvError('image_invalid', `${url.host} sends a document of more than ${limit} bytes`);
    }
  } catch (error) {
    if (error instanceof AenvError) throw error;
    throw new TransientError(url, 'the transfer broke off', { cause: error });
  }
  return Buffer.concat(parts);
}

/** What may go well when it is tried again. */
export class TransientError extends AenvError {
  /** How long the registry asks to wait, milliseconds. */
  readonly waitMs: number;

  constructor(url: URL, reason: string, { remedy = CHECK, waitMs = 0, cause }: TransientDetails = {}) {
    super('registry_unavailable', `the registry ${url.host} cannot be used: ${reason}`, { remedy, cause });
    this.waitMs = waitMs;
  }
}

interface TransientDetails {
  remedy?: string;
  waitMs?: number;
  cause?: unknown;
}

/** A registry that breaks the rules; it will do so again. */
export function unusable(url: URL, reason: string): AenvError {
  return new AenvError('registry_unavailable', `the registry ${url.host} cannot be used: ${reason}`, {
    remedy: 'Check that the name is right; if it is, tell those who run the registry.',
  });
}

function redirectTarget(location: string, from: URL): URL {
  if (!URL.canParse(location, from.href)) throw unusable(from, 'it redirects to a malformed address');
  const target = new URL(location, from);
  const isAllowed = target.protocol === 'https:' || (target.protocol === 'http:' && from.protocol === 'http:');
  if (!isAllowed) throw unusable(from, `it redirects to an insecure address (${target.protocol}//${target.host})`);
  return target;
}

function withoutCredentials(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'authorization'));
}

/** Node puts the reasons of failed connections inside: one per address tried. */
function describe(error: Error): string {
  const inner = error instanceof AggregateError ? error.errors : [];
  return [error, ...inner]
    .map((item) => (item instanceof Error ? item.message : String(item)))
    .filter((message) => message !== '')
    .join('; ');
}
