/** The header Idempotency-Key, as draft-ietf-httpapi-idempotency-key-header has it (a quoted or a bare string). */
import { createHash } from 'node:crypto';
import type { OnceKey } from '@aenv/orchestrator';
import type { FastifyRequest } from 'fastify';
import { badRequest } from './errors.ts';

/** Visible ASCII. */
const KEY = /^[!-~]{1,255}$/;

export function onceKey({ headers, url, body }: FastifyRequest): OnceKey | undefined {
  const given = headers['idempotency-key'];
  if (given === undefined) return undefined;
  const key = typeof given === 'string' ? given.replace(/^"(.*)"$/, '$1') : '';
  if (!KEY.test(key)) throw badRequest('The header Idempotency-Key has to be 1 to 255 visible ASCII characters.');
  const digest = createHash('sha256')
    .update(JSON.stringify([url, body ?? null]))
    .digest('hex');
  return { key, digest };
}
