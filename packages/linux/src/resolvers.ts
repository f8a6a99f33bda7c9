/** The DNS servers that the host uses and that a guest may reach. */
import { readFileSync } from 'node:fs';
import { isIPv4 } from 'node:net';

/** systemd-resolved lists the real servers in the second when the first names only its own address on loopback. */
const FILES = ['/etc/resolv.conf', '/run/systemd/resolve/resolv.conf'];

/** IPv4 addresses from the host's resolv.conf, without those on loopback; empty when there are none. */
export function hostResolvers(): string[] {
  for (const file of FILES) {
    const found = parseResolvers(readOrEmpty(file));
    if (found.length > 0) return found;
  }
  return [];
}

/** Nameservers of a resolv.conf that are IPv4 and not on loopback, in order, each once. */
export function parseResolvers(text: string): string[] {
  const addresses = text
    .split('\n')
    .map((line) => /^\s*nameserver\s+(\S+)/.exec(line)?.[1] ?? '')
    .filter((address) => isIPv4(address) && !address.startsWith('127.'));
  return [...new Set(addresses)];
}

function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
