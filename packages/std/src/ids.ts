/** Identifiers in the shapes that E2B's SDKs expect. */
import { randomBytes, randomUUID } from 'node:crypto';

const BASE36 = '0123456789abcdefghijklmnopqrstuvwxyz';

/** `length` random characters of [a-z0-9] (5.17 bits each). */
export function randomBase36(length: number): string {
  let out = '';
  while (out.length < length) {
    for (const byte of randomBytes(length * 2)) {
      // 252 = 7 × 36: bytes above it would favour the first letters.
      if (byte < 252 && out.length < length) out += BASE36[byte % 36];
    }
  }
  return out;
}

/** `i` and 20 characters; it becomes a DNS label (`PORT-ID`), so [a-z0-9] only. */
export const newSandboxId = (): string => `i${randomBase36(20)}`;

/** 20 characters of [a-z0-9]. */
export const newTemplateId = (): string => randomBase36(20);

/** `l` and 20 characters; also the name of a node in QEMU's block graph, which begins with a letter. */
export const newLayerId = (): string => `l${randomBase36(20)}`;

/** `op` and 20 characters. */
export const newOperationId = (): string => `op${randomBase36(20)}`;

/** A UUID, as E2B's build ids are. */
export const newBuildId = (): string => randomUUID();

/** `e2b_` and 40 hex digits: SDKs up to 2.45 check the shape on the client's side. */
export const newApiKey = (): string => `e2b_${randomBytes(20).toString('hex')}`;

/** A secret of 256 bits in URL-safe base64. */
export const newSecret = (): string => randomBytes(32).toString('base64url');

export const SANDBOX_ID_PATTERN = /^[a-z0-9]{1,40}$/;
