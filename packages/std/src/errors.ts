/**
 * The one family of errors that a user may see.
 *
 * Every failure that can reach a person or a program carries a stable code, the HTTP status it maps to, a message that
 * is safe to show, and (where there is one) what to do about it. A plain `Error` means a bug in this project.
 * The table below is the contract; `docs/errors.md` is generated from it.
 */

/** code → HTTP status and the meaning shown in `docs/errors.md`. */
export const ERROR_CODES = {
  bad_request: { status: 400, meaning: 'The request is malformed or a value is out of range.' },
  unsupported: { status: 400, meaning: 'A feature of the E2B API that this server does not have; it is not ignored.' },
  unauthorized: { status: 401, meaning: 'The API key or access token is missing or wrong.' },
  forbidden: { status: 403, meaning: 'The caller is known but may not do this.' },
  not_found: { status: 404, meaning: 'No such route or object.' },
  sandbox_not_found: { status: 404, meaning: 'No sandbox with this id exists (it may have timed out or been killed).' },
  template_not_found: { status: 404, meaning: 'No template with this id or name exists.' },
  build_not_found: { status: 404, meaning: 'No build with this id exists for this template.' },
  conflict: { status: 409, meaning: 'The object is in a state in which this operation is refused.' },
  sandbox_paused: { status: 409, meaning: 'The sandbox is paused; connect to it (or resume it) first.' },
  sandbox_not_paused: { status: 409, meaning: 'The sandbox is running, so it cannot be resumed.' },
  sandbox_busy: { status: 409, meaning: 'Another operation on this sandbox is in progress.' },
  template_in_use: { status: 409, meaning: 'The template is still needed by a sandbox.' },
  payload_too_large: { status: 413, meaning: 'The request body is larger than the limit.' },
  image_reference_invalid: { status: 400, meaning: 'The image reference cannot be parsed.' },
  image_not_found: { status: 404, meaning: 'The registry, layout or archive has no such image.' },
  image_platform_missing: { status: 400, meaning: 'The image exists, but not for this processor architecture.' },
  image_invalid: {
    status: 422,
    meaning: 'The image breaks its own format: wrong digest, truncated layer, illegal path.',
  },
  registry_unauthorized: { status: 502, meaning: 'The registry refused the credentials, or asks for some.' },
  registry_unavailable: { status: 502, meaning: 'The registry could not be reached, or stopped answering half-way.' },
  template_build_failed: { status: 500, meaning: 'The template build failed; the reason names the step.' },
  sandbox_start_failed: {
    status: 500,
    meaning: 'The micro-VM did not start or its guest daemon did not answer in time.',
  },
  vmm_failed: { status: 500, meaning: 'The virtual machine monitor refused a command or died.' },
  snapshot_failed: { status: 500, meaning: 'The state of the sandbox could not be captured; it was left as it was.' },
  disk_unreadable: {
    status: 422,
    meaning: 'A disk cannot be read without starting it: damage, another file system, or a feature that is not read.',
  },
  restore_failed: { status: 500, meaning: 'The saved state could not be restored; it is still there.' },
  server_unreachable: { status: 502, meaning: 'The AgentENV server does not answer (seen by clients only).' },
  guest_unreachable: { status: 502, meaning: 'The guest daemon does not answer.' },
  port_closed: { status: 502, meaning: 'The sandbox runs, but nothing listens on this port.' },
  traffic_denied: { status: 403, meaning: 'The network policy of the sandbox refuses this request.' },
  host_missing_tool: { status: 500, meaning: 'A program that the server needs is not installed, or too old.' },
  host_unsupported: {
    status: 500,
    meaning: 'This machine lacks something that cannot be installed (see the message).',
  },
  disk_full: { status: 507, meaning: 'The disk that holds the state is full.' },
  address_in_use: { status: 500, meaning: 'The address to listen on is taken by another process.' },
  config_invalid: { status: 400, meaning: 'The configuration file or an AENV_* variable is wrong.' },
  capacity_exhausted: {
    status: 503,
    meaning: 'No room for another sandbox right now (memory, disk or network slots).',
  },
  timeout: { status: 504, meaning: 'The operation did not finish before its deadline.' },
  shutting_down: { status: 503, meaning: 'The server is stopping.' },
  internal: { status: 500, meaning: 'A bug, or a failure that nothing more precise describes.' },
} as const satisfies Record<string, { status: number; meaning: string }>;

export type ErrorCode = keyof typeof ERROR_CODES;

export interface AenvErrorOptions {
  /** What the reader can do about it, as a sentence. */
  remedy?: string;
  /** The underlying failure; logged, never shown to clients. */
  cause?: unknown;
}

/** What travels over process borders (launcher socket, job output, database). */
export interface ErrorJson {
  code: ErrorCode;
  message: string;
  remedy?: string;
}

export class AenvError extends Error {
  readonly code: ErrorCode;
  readonly remedy: string | undefined;

  constructor(code: ErrorCode, message: string, options: AenvErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'AenvError';
    this.code = code;
    this.remedy = options.remedy;
  }

  get status(): number {
    return ERROR_CODES[this.code].status;
  }

  toJSON(): ErrorJson {
    return { code: this.code, message: this.message, ...(this.remedy === undefined ? {} : { remedy: this.remedy }) };
  }

  static fromJSON(json: ErrorJson): AenvError {
    return new AenvError(json.code in ERROR_CODES ? json.code : 'internal', json.message, { remedy: json.remedy });
  }

  /** Turns anything caught into an AenvError; what is already one is returned as it is. */
  static from(reason: unknown, fallback: ErrorCode = 'internal'): AenvError {
    if (reason instanceof AenvError) return reason;
    if (isSystemError(reason, 'ENOSPC') || isSystemError(reason, 'EDQUOT') || isDatabaseFull(reason)) {
      return new AenvError('disk_full', 'the disk is full', {
        remedy: 'Free space under AENV_HOME (delete sandboxes or templates), then try again.',
        cause: reason,
      });
    }
    const message = reason instanceof Error ? reason.message : String(reason);
    return new AenvError(fallback, message, { cause: reason });
  }
}

/** True when `reason` is a Node system error (and, when given, has this `code`, such as ENOENT). */
export function isSystemError(reason: unknown, code?: string): reason is NodeJS.ErrnoException {
  if (!(reason instanceof Error) || !('code' in reason) || typeof reason.code !== 'string') return false;
  return code === undefined || reason.code === code;
}

/** SQLITE_FULL, as node:sqlite reports it. */
function isDatabaseFull(reason: unknown): boolean {
  return isSystemError(reason, 'ERR_SQLITE_ERROR') && 'errcode' in reason && reason.errcode === 13;
}
