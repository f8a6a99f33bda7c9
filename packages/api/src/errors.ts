/** How failures look on the wire: `{code, message, error_code, remedy?}`, where `code` is the HTTP status as in E2B's API. */
import type { Schema } from '@aenv/protocol';
import { AenvError, type Logger } from '@aenv/std';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** Unknown property names may be as long as the body; nobody reads more than this. */
const MAX_MESSAGE_LENGTH = 500;

/** Seconds after which what does not fit now is worth another try. */
const RETRY_AFTER_S = '5';

export function badRequest(message: string, remedy?: string): AenvError {
  const text = message.length > MAX_MESSAGE_LENGTH ? `${message.slice(0, MAX_MESSAGE_LENGTH)}…` : message;
  return new AenvError('bad_request', text, { remedy });
}

export function errorBody(error: AenvError): Schema<'Error'> {
  return {
    code: error.status,
    message: error.message,
    error_code: error.code,
    ...(error.remedy === undefined ? {} : { remedy: error.remedy }),
  };
}

interface HttpFailure {
  statusCode: number;
  code?: string;
  message: string;
}

function isHttpFailure(reason: unknown): reason is HttpFailure {
  return reason instanceof Error && 'statusCode' in reason && typeof reason.statusCode === 'number';
}

/**
 * What the client is told. Fastify's own refusals of a request keep their message; the text of any other error that is
 * not an AenvError stays in the log, because it may hold paths or secrets.
 */
function publicError(reason: unknown, requestId: string): AenvError {
  if (reason instanceof AenvError) return reason;
  if (isHttpFailure(reason) && reason.statusCode === 413) {
    return new AenvError('payload_too_large', 'The body of the request is too large.', {
      remedy: 'Send files to the sandbox itself; the control plane takes small JSON documents only.',
    });
  }
  if (isHttpFailure(reason) && reason.statusCode >= 400 && reason.statusCode < 500) return badRequest(reason.message);
  const known = AenvError.from(reason);
  if (known.code !== 'internal') return known;
  return new AenvError('internal', 'The server failed in a way that it did not foresee.', {
    remedy: `Look for the request id ${requestId} in the server's log and report it.`,
    cause: reason,
  });
}

export function sendError(logger: Logger, reason: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const error = publicError(reason, request.id);
  const fields = { requestId: request.id, errorCode: error.code, message: error.message };
  if (error.status >= 500) logger.error({ ...fields, err: error.cause ?? error }, 'request failed');
  else logger.debug(fields, 'request refused');
  // A client that still sends would meet a closed connection, and never read why. Node reads the rest and forgets it.
  if (error.code === 'payload_too_large') reply.removeHeader('connection');
  if (error.status === 503) reply.header('retry-after', RETRY_AFTER_S);
  reply.code(error.status).send(errorBody(error));
}
