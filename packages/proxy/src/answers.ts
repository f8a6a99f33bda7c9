/** What a client gets that cannot be connected to a sandbox: JSON that says whether sandbox, port or policy is to blame. */
import { AenvError, type ErrorCode } from '@aenv/std';
import type { Target } from './classify.ts';

export interface Refusal {
  status: number;
  body: {
    sandboxId: string;
    message: string;
    /** The HTTP status once more, as E2B has it. */
    code: number;
    port?: number;
    error_code: ErrorCode;
    remedy?: string;
  };
}

/** E2B's SDKs take 502 for "the sandbox is gone", whatever the reason. */
export function sandboxNotFound({ sandboxId }: Target): Refusal {
  return refusal(502, 'sandbox_not_found', sandboxId, 'The sandbox was not found');
}

export function portClosed({ sandboxId, port }: Target): Refusal {
  const { status, body } = refusal(502, 'port_closed', sandboxId, 'The sandbox is running but port is not open', {
    remedy: 'Start a server on this port in the sandbox, listening on all addresses or on localhost.',
  });
  return { status, body: { ...body, port } };
}

export function connectionLost({ sandboxId, port }: Target, detail: string): Refusal {
  const { status, body } = refusal(502, 'guest_unreachable', sandboxId, `The sandbox did not answer: ${detail}`);
  return { status, body: { ...body, port } };
}

export function denied({ sandboxId }: Target): Refusal {
  return refusal(403, 'traffic_denied', sandboxId, 'The sandbox is paused, and only its access token wakes it', {
    remedy: 'Send X-Access-Token, or connect to the sandbox with the SDK.',
  });
}

/** Routes of the guest daemon that belong to the host. */
export function internalRoute({ sandboxId }: Target): Refusal {
  return refusal(404, 'not_found', sandboxId, 'No such route');
}

export function tooManyWaiting({ sandboxId }: Target): Refusal {
  return refusal(503, 'capacity_exhausted', sandboxId, 'Too many requests wait for sandboxes to wake up');
}

export function invalid(message: string): Refusal {
  return refusal(400, 'bad_request', '', message);
}

export function fromError({ sandboxId }: Target, reason: unknown): Refusal {
  const error = AenvError.from(reason);
  const status = error.code === 'sandbox_not_found' ? 502 : error.status;
  return refusal(status, error.code, sandboxId, error.message, { remedy: error.remedy });
}

function refusal(
  status: number,
  code: ErrorCode,
  sandboxId: string,
  message: string,
  { remedy }: { remedy?: string } = {},
): Refusal {
  return {
    status,
    body: { sandboxId, message, code: status, error_code: code, ...(remedy === undefined ? {} : { remedy }) },
  };
}
