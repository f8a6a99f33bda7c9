/** Failures of calls into a sandbox, turned into the project's own errors. */
import { AenvError, ERROR_CODES, type ErrorCode } from '@aenv/std';
import { Code, ConnectError } from '@connectrpc/connect';
import { codeFromString } from '@connectrpc/connect/protocol-connect';

const BY_CONNECT_CODE: Partial<Record<Code, ErrorCode>> = {
  [Code.InvalidArgument]: 'bad_request',
  [Code.OutOfRange]: 'bad_request',
  [Code.Unauthenticated]: 'unauthorized',
  [Code.PermissionDenied]: 'forbidden',
  [Code.NotFound]: 'not_found',
  [Code.AlreadyExists]: 'conflict',
  [Code.FailedPrecondition]: 'conflict',
  [Code.ResourceExhausted]: 'capacity_exhausted',
  [Code.DeadlineExceeded]: 'timeout',
  [Code.Unavailable]: 'guest_unreachable',
};

const BY_STATUS: Record<number, ErrorCode> = {
  400: 'bad_request',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  409: 'conflict',
  413: 'payload_too_large',
  502: 'guest_unreachable',
  503: 'capacity_exhausted',
  504: 'timeout',
  507: 'disk_full',
};

const REMEDIES: Partial<Record<ErrorCode, string>> = {
  guest_unreachable: 'Look with `aenv list` whether the sandbox still runs; `aenv logs ID` shows what happened to it.',
  unauthorized: 'Check the API key (`aenv auth`) or, for a secure sandbox, its access token.',
};

function withUsualRemedy(code: ErrorCode, message: string, cause?: unknown): AenvError {
  return new AenvError(code, message, { remedy: REMEDIES[code], cause });
}

function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(ERROR_CODES, value);
}

function codeOf(body: object, status: number): ErrorCode {
  if ('error_code' in body && isErrorCode(body.error_code)) return body.error_code;
  const connectCode = 'code' in body && typeof body.code === 'string' ? codeFromString(body.code) : undefined;
  const known = connectCode === undefined ? undefined : BY_CONNECT_CODE[connectCode];
  return known ?? BY_STATUS[status] ?? (status >= 500 ? 'internal' : 'bad_request');
}

/**
 * Reads the error body of the API, the proxy and aenvd (`{code: <status>, message, error_code?, remedy?}`) or of a
 * Connect call (`{code: "not_found", message}`). Other shapes (a load balancer's page) give an error naming the status.
 */
export function errorFromResponse(status: number, body: string): AenvError {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    parsed = undefined;
  }
  if (typeof parsed !== 'object' || parsed === null || !('message' in parsed)) {
    return withUsualRemedy(codeOf({}, status), `the answer was HTTP ${status} without a message`);
  }
  const code = codeOf(parsed, status);
  const remedy = 'remedy' in parsed && typeof parsed.remedy === 'string' ? parsed.remedy : REMEDIES[code];
  return new AenvError(code, String(parsed.message), { remedy });
}

/** Turns what a Connect call or an HTTP request threw into an AenvError; what is one already stays as it is. */
export function errorFromCall(reason: unknown): AenvError {
  if (reason instanceof AenvError) return reason;
  if (reason instanceof ConnectError) {
    if (reason.cause instanceof AenvError) return reason.cause;
    const code = BY_CONNECT_CODE[reason.code];
    if (code) return withUsualRemedy(code, reason.rawMessage, reason);
    return reason.cause === undefined && reason.code !== Code.Unknown
      ? withUsualRemedy('internal', reason.rawMessage, reason)
      : lostConnection(reason.cause ?? reason);
  }
  return lostConnection(reason);
}

/** fetch hides the reason (ECONNREFUSED, "other side closed") behind "fetch failed". */
function lostConnection(reason: unknown): AenvError {
  let deepest = reason;
  while (deepest instanceof Error && deepest.cause !== undefined) deepest = deepest.cause;
  const detail = deepest instanceof Error ? deepest.message || deepest.name : String(deepest);
  return withUsualRemedy('guest_unreachable', `the connection to the sandbox failed: ${detail}`, reason);
}
