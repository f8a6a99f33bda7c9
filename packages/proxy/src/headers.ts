/** Which headers pass a proxy (RFC 9110 §7.6.1). */
import { type RequestHeaders, ROUTING_HEADERS } from './classify.ts';

const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  // Answered here: the body is asked for as soon as the request is passed on.
  'expect',
]);

/** Without what is meant for the next hop only, and without HTTP/2's pseudo headers. */
export function endToEnd(headers: RequestHeaders): Record<string, string | string[]> {
  const named = new Set(
    String(headers.connection ?? '')
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  );
  const kept: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || name.startsWith(':') || HOP_BY_HOP.has(name) || named.has(name)) continue;
    if (!ROUTING_HEADERS.has(name)) kept[name] = value;
  }
  return kept;
}
