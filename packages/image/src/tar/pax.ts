/**
 * Extended header records, `LENGTH KEY=VALUE\n`, read by their length and never by their content: values may hold
 * newlines, equals signs and bytes that are no text, as file capabilities do.
 * Source: POSIX.1-2017 `pax`, “pax Extended Header”; SCHILY.xattr as star and GNU tar write it.
 */
import { tarError } from './entry.ts';

const XATTR = 'SCHILY.xattr.';

/** What an extended header changes about the next member. */
export interface PaxOverrides {
  path?: string;
  link?: string;
  size?: number;
  uid?: number;
  gid?: number;
  mtime?: number;
  xattrs: Map<string, string>;
}

export function parsePax(body: Buffer): PaxOverrides {
  const overrides: PaxOverrides = { xattrs: new Map() };
  for (const [key, value] of paxRecords(body)) applyRecord(overrides, key, value);
  return overrides;
}

function* paxRecords(body: Buffer): Generator<[string, string]> {
  let at = 0;
  while (at < body.length) {
    const space = body.indexOf(0x20, at);
    const digits = space === -1 ? '' : body.toString('latin1', at, space);
    if (!/^[1-9][0-9]{0,9}$/.test(digits)) throw tarError('an extended header has a malformed length');
    const end = at + Number(digits);
    const equals = body.indexOf(0x3d, space);
    if (end > body.length || equals === -1 || equals >= end || body[end - 1] !== 0x0a) {
      throw tarError('an extended header has a malformed record');
    }
    yield [body.toString('latin1', space + 1, equals), body.toString('latin1', equals + 1, end - 1)];
    at = end;
  }
}

function applyRecord(overrides: PaxOverrides, key: string, value: string): void {
  if (key.startsWith('GNU.sparse.')) throw tarError('it holds a sparse file, which OCI layers must not');
  if (key.startsWith(XATTR)) {
    overrides.xattrs.set(key.slice(XATTR.length), value);
    return;
  }
  // An empty value means: as if the record were not there.
  if (value === '') return;
  if (key === 'path') overrides.path = noNul(value);
  else if (key === 'linkpath') overrides.link = noNul(value);
  else if (key === 'size' || key === 'uid' || key === 'gid') overrides[key] = wholeNumber(value);
  else if (key === 'mtime') overrides.mtime = seconds(value);
}

function noNul(value: string): string {
  if (value.includes('\0')) throw tarError('a name holds a NUL character');
  return value;
}

function wholeNumber(value: string): number {
  const result = Number(value);
  if (!/^[0-9]{1,16}$/.test(value) || !Number.isSafeInteger(result)) {
    throw tarError('an extended header has a malformed number');
  }
  return result;
}

function seconds(value: string): number {
  if (!/^-?[0-9]{1,15}(?:\.[0-9]*)?$/.test(value)) throw tarError('an extended header has a malformed time');
  return Math.floor(Number(value));
}
