/** The `metadata` query parameter of lists. */
import { badRequest } from './errors.ts';

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw badRequest(
      'query.metadata is not percent-encoded correctly.',
      'Encode each key and value, then the whole form.',
    );
  }
}

/**
 * E2B's SDKs percent-encode each key and value, make a form of the pairs, and encode that again for the query.
 * `text` is the parameter after the query has been decoded, so a form whose parts are still encoded once.
 */
export function parseMetadataFilter(text: string | undefined): Record<string, string> | undefined {
  if (text === undefined || text === '') return undefined;
  const pairs = [...new URLSearchParams(text)].map(([key, value]) => [percentDecoded(key), percentDecoded(value)]);
  return Object.fromEntries(pairs);
}
