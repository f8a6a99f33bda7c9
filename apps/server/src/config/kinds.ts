/** What a setting may hold, and how it is read from TOML and from text (environment variables, flags). */
import { isIP } from 'node:net';
import { isAbsolute, resolve } from 'node:path';

/** Each throws an Error whose message completes the sentence "NAME ...", such as "must be true or false". */
export interface Kind<T> {
  /** As the documentation names it. */
  readonly label: string;
  fromText(text: string): T;
  fromToml(value: unknown): T;
  /** As the documentation and `--help` show a default. */
  show(value: T): string;
}

export interface Address {
  host: string;
  port: number;
}

/** HOST:PORT, with IPv6 hosts in brackets; port 0 lets the system choose. */
export function parseAddress(text: string): Address {
  const match = /^(?:\[(?<v6>[^\]]+)\]|(?<v4>[^:[\]]+)):(?<port>\d{1,5})$/.exec(text);
  const { v6, v4, port } = match?.groups ?? {};
  const host = v6 ?? v4 ?? '';
  const known = v6 === undefined ? isIP(host) === 4 || host === 'localhost' : isIP(host) === 6;
  if (!known || Number(port) > 65_535)
    throw new Error(`must be ADDRESS:PORT such as 127.0.0.1:8000 or [::1]:8000, not ${text}`);
  return { host, port: Number(port) };
}

export function formatAddress({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** True when only programs on this machine can reach it. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

function textOnly<T>(label: string, fromText: (text: string) => T, show: (value: T) => string): Kind<T> {
  return {
    label,
    fromText,
    fromToml(value) {
      if (typeof value !== 'string') throw new Error('must be a string');
      return fromText(value);
    },
    show,
  };
}

export const address = textOnly('address', parseAddress, formatAddress);

export const path = textOnly(
  'absolute path',
  (text) => {
    if (!isAbsolute(text)) throw new Error(`must be an absolute path, not ${text}`);
    return resolve(text);
  },
  (value) => value,
);

/** A path that may be left empty. */
export const optionalPath: Kind<string> = textOnly(
  'absolute path',
  (text) => (text === '' ? '' : path.fromText(text)),
  (value) => value,
);

export function choice<const T extends string>(options: readonly T[]): Kind<T> {
  const find = (text: string): T => {
    const found = options.find((option) => option === text);
    if (found === undefined) throw new Error(`must be one of ${options.join(', ')}, not ${text}`);
    return found;
  };
  return textOnly(options.join(' | '), find, (value) => value);
}

export function integer(minimum: number, maximum: number): Kind<number> {
  const check = (value: number): number => {
    if (!Number.isSafeInteger(value) || value < minimum || value > maximum)
      throw new Error(`must be a whole number from ${minimum} to ${maximum}`);
    return value;
  };
  return {
    label: `${minimum}–${maximum}`,
    fromText: (text) => check(/^\d+$/.test(text) ? Number(text) : Number.NaN),
    fromToml: (value) => check(typeof value === 'number' ? value : Number.NaN),
    show: String,
  };
}

export const boolean: Kind<boolean> = {
  label: 'true or false',
  fromText(text) {
    if (text === 'true' || text === '1') return true;
    if (text === 'false' || text === '0') return false;
    throw new Error('must be true or false');
  },
  fromToml(value) {
    if (typeof value !== 'boolean') throw new Error('must be true or false');
    return value;
  },
  show: String,
};

const DOMAIN = /^(?=.{1,200}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;

function checkDomain(text: string): string {
  const domain = text.trim().toLowerCase().replace(/\.$/, '');
  if (!DOMAIN.test(domain)) throw new Error(`must list domain names, and ${JSON.stringify(text)} is none`);
  return domain;
}

function nonEmpty(domains: string[]): string[] {
  if (domains.length === 0) throw new Error('must name at least one domain');
  return domains;
}

export const domains: Kind<string[]> = {
  label: 'list of domain names',
  fromText: (text) => nonEmpty(text.split(',').map(checkDomain)),
  fromToml(value) {
    if (!Array.isArray(value) || !value.every((item) => typeof item === 'string'))
      throw new Error('must be an array of strings');
    return nonEmpty(value.map(checkDomain));
  },
  show: (value) => value.join(','),
};
