/** Decides whether and where a request may go, and wakes the sandbox that it is for. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { denied, fromError, internalRoute, type Refusal, sandboxNotFound, tooManyWaiting } from './answers.ts';
import type { RequestHeaders, Target } from './classify.ts';
import type { RouteSource } from './routes.ts';

/** Port of the guest daemon; other ports are the user's own. */
const DAEMON_PORT = 49_983;
const INTERNAL_ROUTES = new Set(['/init', '/sync']);
/** Requests that may wait for sandboxes to wake at the same time. */
const MAX_WAITING = 512;

export type Passage = { kind: 'open'; address: string } | { kind: 'refused'; refusal: Refusal };

export interface GateOptions {
  routes: RouteSource;
  isApiKey: (key: string) => boolean;
}

export class Gate {
  readonly #routes: RouteSource;
  readonly #isApiKey: (key: string) => boolean;
  #waiting = 0;

  constructor({ routes, isApiKey }: GateOptions) {
    this.#routes = routes;
    this.#isApiKey = isApiKey;
  }

  isRunning(target: Target): boolean {
    return this.#routes.route(target.sandboxId).kind === 'running';
  }

  async pass(target: Target, headers: RequestHeaders): Promise<Passage> {
    if (target.port === DAEMON_PORT && INTERNAL_ROUTES.has(pathOf(target))) return refused(internalRoute(target));
    const route = this.#routes.route(target.sandboxId);
    if (route.kind === 'running') return { kind: 'open', address: route.address };
    if (route.kind === 'unknown' || !route.autoResume) return refused(sandboxNotFound(target));
    // Whoever may not use the daemon may not wake it either.
    if (target.port === DAEMON_PORT && !this.#mayWake(route.envdAccessToken, headers)) return refused(denied(target));
    return this.#wake(target);
  }

  async #wake(target: Target): Promise<Passage> {
    if (this.#waiting >= MAX_WAITING) return refused(tooManyWaiting(target));
    this.#waiting += 1;
    try {
      await this.#routes.wake(target.sandboxId);
    } catch (error) {
      return refused(fromError(target, error));
    } finally {
      this.#waiting -= 1;
    }
    const route = this.#routes.route(target.sandboxId);
    return route.kind === 'running' ? { kind: 'open', address: route.address } : refused(sandboxNotFound(target));
  }

  #mayWake(token: string | undefined, headers: RequestHeaders): boolean {
    if (token === undefined) return true;
    const given = headers['x-access-token'];
    const key = headers['x-api-key'];
    return (typeof given === 'string' && isEqual(given, token)) || (typeof key === 'string' && this.#isApiKey(key));
  }
}

function refused(refusal: Refusal): Passage {
  return { kind: 'refused', refusal };
}

/** The path as a server would understand it: no query, no doubled slashes or dots to hide behind. */
function pathOf({ path }: Target): string {
  try {
    const url = path.startsWith('/') ? `http://sandbox${path}` : path;
    return decodeURIComponent(new URL(url).pathname)
      .replace(/\/+/g, '/')
      .replace(/(?<=.)\/$/, '');
  } catch {
    return path;
  }
}

/** In a time that does not tell how much of the token is right. */
function isEqual(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
