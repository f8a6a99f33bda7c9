/** Content digests as OCI writes them: `sha256:` and 64 hex digits, or `sha512:` and 128. */
import { createHash, type Hash } from 'node:crypto';
import { AenvError } from '@aenv/std';

const DIGEST = /^(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/;

export type DigestAlgorithm = 'sha256' | 'sha512';

export function isDigest(text: unknown): text is string {
  return typeof text === 'string' && DIGEST.test(text);
}

export function splitDigest(digest: string): { algorithm: DigestAlgorithm; hex: string } {
  const colon = digest.indexOf(':');
  return { algorithm: digest.slice(0, colon) as DigestAlgorithm, hex: digest.slice(colon + 1) };
}

/** A running hash of the algorithm that `digest` names. */
export function hasherFor(digest: string): Hash {
  return createHash(splitDigest(digest).algorithm);
}

export function digestOf(bytes: Uint8Array, algorithm: DigestAlgorithm = 'sha256'): string {
  return `${algorithm}:${createHash(algorithm).update(bytes).digest('hex')}`;
}

/** `image_invalid` unless `bytes` have this digest. `what` names them in the message. */
export function verifyDigest(bytes: Uint8Array, digest: string, what: string): void {
  const actual = digestOf(bytes, splitDigest(digest).algorithm);
  if (actual !== digest) throw digestMismatch(what, digest, actual);
}

export function digestMismatch(what: string, expected: string, actual: string): AenvError {
  return new AenvError('image_invalid', `${what} has the digest ${actual}, but ${expected} was announced`, {
    remedy: 'The source delivers damaged or altered content: push the image again, or pull from another registry.',
  });
}

/** `sha256:` and the first 12 digits: enough to recognise a layer in a progress line. */
export function shortDigest(digest: string): string {
  const { algorithm, hex } = splitDigest(digest);
  return `${algorithm}:${hex.slice(0, 12)}`;
}
