/** The `WWW-Authenticate` header (RFC 9110 §11.6.1), from a registry that may send anything. */

export interface Challenge {
  /** Lower case: `bearer` or `basic`. */
  scheme: string;
  /** Names in lower case. */
  parameters: Record<string, string>;
}

const SCHEME = /\s*,?\s*([A-Za-z][A-Za-z0-9_-]*)(?=\s|,|$)(?!\s*=)/y;
const PARAMETER = /[\s,]*([A-Za-z0-9_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/y;
const MAX_LENGTH = 8192;

/** All challenges in the header's values, in order; what cannot be read ends the list. */
export function parseChallenges(header: string | string[] | undefined): Challenge[] {
  const text = Array.isArray(header) ? header.join(', ') : (header ?? '');
  const challenges: Challenge[] = [];
  let at = 0;
  while (at < text.length && text.length <= MAX_LENGTH) {
    SCHEME.lastIndex = at;
    const scheme = SCHEME.exec(text);
    if (scheme === null) break;
    const challenge: Challenge = { scheme: (scheme[1] ?? '').toLowerCase(), parameters: {} };
    at = readParameters(text, SCHEME.lastIndex, challenge.parameters);
    challenges.push(challenge);
  }
  return challenges;
}

/** Returns where the parameters end. */
function readParameters(text: string, start: number, parameters: Record<string, string>): number {
  let at = start;
  for (;;) {
    PARAMETER.lastIndex = at;
    const match = PARAMETER.exec(text);
    if (match === null) return at;
    const value = match[2] === undefined ? (match[3] ?? '') : match[2].replaceAll(/\\(.)/g, '$1');
    parameters[(match[1] ?? '').toLowerCase()] = value;
    at = PARAMETER.lastIndex;
  }
}
