/** Who may call an operation: the API key in `X-API-Key`, or as a bearer token where E2B's CLI sends one. */
import type { OperationInfo } from '@aenv/protocol';
import { AenvError } from '@aenv/std';
import type { FastifyRequest } from 'fastify';

const REMEDY =
  'Send the key of this server in the header X-API-Key (SDKs: E2B_API_KEY); it is in AENV_HOME/secrets/api-key.';

function bearerToken(request: FastifyRequest): string | undefined {
  // E2B's access tokens begin with `sk_`; its CLI refuses others, so the key may be given with that before it.
  return /^Bearer +(?:sk_)?(\S+)$/i.exec(request.headers.authorization ?? '')?.[1];
}

/** The valid key that the request carries. Throws `unauthorized`. */
export function authenticate(
  request: FastifyRequest,
  security: OperationInfo['security'],
  isApiKey: (key: string) => boolean,
): string {
  const header = request.headers['x-api-key'];
  const given = [
    ...(security.includes('ApiKey') && typeof header === 'string' ? [header] : []),
    ...(security.includes('Bearer') ? [bearerToken(request)] : []),
  ];
  const key = given.find((candidate) => candidate !== undefined && isApiKey(candidate));
  if (key !== undefined) return key;
  const message = given.every((candidate) => candidate === undefined)
    ? 'The request carries no API key.'
    : 'The API key is not valid.';
  throw new AenvError('unauthorized', message, { remedy: REMEDY });
}
