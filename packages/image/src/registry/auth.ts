/**
 * Credentials for one repository: HTTP Basic, or the token protocol that Docker Hub and most registries use.
 * Source: distribution “Token Authentication Specification”; OAuth 2.0 answers name the token `access_token`.
 */
import { AenvError } from '@aenv/std';
import { MAX_DOCUMENT_BYTES, parseJson } from '../manifest.ts';
import { type Challenge, parseChallenges } from './challenge.ts';
import { type Answer, type RegistryHttp, readBody } from './http.ts';

export interface Credentials {
  username: string;
  password: string;
}

export interface AuthTarget {
  http: RegistryHttp;
  /** The registry's own address; decides whether a token service may be reached without TLS. */
  registry: URL;
  repository: string;
  credentials: Credentials | undefined;
}

/** The `Authorization` header that answers a 401; `registry_unauthorized` when there is none. */
export async function authorize(target: AuthTarget, answer: Answer, signal?: AbortSignal): Promise<string> {
  const challenges = parseChallenges(answer.headers['www-authenticate']);
  const bearer = challenges.find(({ scheme }) => scheme === 'bearer');
  if (bearer) return `Bearer ${await fetchToken(target, bearer, signal)}`;
  if (!challenges.some(({ scheme }) => scheme === 'basic')) {
    throw new AenvError('registry_unauthorized', `${target.registry.host} asks for credentials in an unknown way`);
  }
  if (target.credentials === undefined) throw unauthorized(target);
  return basic(target.credentials);
}

export function unauthorized({ registry, repository, credentials }: AuthTarget): AenvError {
  const message = credentials
    ? `${registry.host} refuses the credentials for ${repository}`
    : `${registry.host} does not give ${repository} to everyone: it is private, or there is no such image`;
  return new AenvError('registry_unauthorized', message, {
    remedy: credentials ? 'Check user name and password.' : 'Check the name, or pass a user name and a password.',
  });
}

async function fetchToken(target: AuthTarget, { parameters }: Challenge, signal?: AbortSignal): Promise<string> {
  const url = tokenUrl(target, parameters);
  const headers: Record<string, string> = target.credentials ? { authorization: basic(target.credentials) } : {};
  const answer = await target.http.get(url, { headers, signal });
  const body = await readBody(answer, url, MAX_DOCUMENT_BYTES);
  if (answer.status === 401 || answer.status === 403) throw unauthorized(target);
  if (answer.status !== 200) {
    throw new AenvError('registry_unavailable', `the token service ${url.host} answers with status ${answer.status}`, {
      remedy: 'Try again later.',
    });
  }
  const json = parseJson(body, `the answer of ${url.host}`);
  const token = json.token ?? json.access_token;
  if (typeof token === 'string' && /^[\x21-\x7e]+$/.test(token)) return token;
  throw new AenvError('registry_unavailable', `the token service ${url.host} sends no usable token`);
}

function tokenUrl({ registry, repository }: AuthTarget, { realm = '', service, scope }: Record<string, string>): URL {
  const url = URL.canParse(realm) ? new URL(realm) : undefined;
  // A registry behind TLS must not have the password sent in the clear.
  const isAllowed = url?.protocol === 'https:' || (url?.protocol === 'http:' && registry.protocol === 'http:');
  if (url === undefined || !isAllowed) {
    throw new AenvError('registry_unauthorized', `${registry.host} names no usable token service`);
  }
  if (service !== undefined) url.searchParams.set('service', service);
  url.searchParams.set('scope', scope ?? `repository:${repository}:pull`);
  return url;
}

function basic({ username, password }: Credentials): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}
