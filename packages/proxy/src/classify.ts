/** Whether a request is for the API or for a port of a sandbox, from its host and headers alone. Pure. */

export interface Target {
  sandboxId: string;
  /** 1 … 65535 */
  port: number;
  /** Path and query as the sandbox gets them. */
  path: string;
}

export type Classified =
  | { kind: 'control' }
  | { kind: 'sandbox'; target: Target }
  | { kind: 'invalid'; message: string };

/** As Node gives them: lower-case names. */
export type RequestHeaders = Record<string, string | string[] | undefined>;

const ID_HEADERS = ['e2b-sandbox-id', 'x-agentenv-sandbox-id'];
const PORT_HEADERS = ['e2b-sandbox-port', 'x-agentenv-target-port'];
/** Only between the client and us. */
export const ROUTING_HEADERS = new Set([...ID_HEADERS, ...PORT_HEADERS, 'e2b-traffic-access-token']);

const SANDBOX_ID = /^[a-z0-9]{1,40}$/;
const HOST = /^(\d{1,5})-([a-z0-9]{1,40})\.([a-z0-9.-]+)$/;
const PROXY_PREFIX = /^\/proxy(?=\/|\?|$)/;

function header(headers: RequestHeaders, names: readonly string[]): string | undefined {
  for (const name of names) {
    const value = headers[name];
    if (typeof value === 'string') return value.trim();
  }
  return undefined;
}

function portOf(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{1,5}$/.test(text)) return undefined;
  const port = Number(text);
  return port >= 1 && port <= 65_535 ? port : undefined;
}

/** `host` is the authority of the request; `domains` those that the server answers for, all when there are none. */
export function classify(
  host: string | undefined,
  headers: RequestHeaders,
  url: string,
  domains: readonly string[],
): Classified {
  const byHost = fromHost(host, domains);
  if (byHost) return { kind: 'sandbox', target: { ...byHost, path: url } };
  const hasPrefix = PROXY_PREFIX.test(url);
  // E2B's older ids end in `-CLIENT`; the part before it names the sandbox.
  const sandboxId = header(headers, ID_HEADERS)?.split('-', 1)[0];
  if (sandboxId === undefined && !hasPrefix) return { kind: 'control' };
  if (sandboxId === undefined || !SANDBOX_ID.test(sandboxId)) {
    return { kind: 'invalid', message: 'the header E2b-Sandbox-Id must name a sandbox' };
  }
  const port = portOf(header(headers, PORT_HEADERS));
  if (port === undefined) {
    return { kind: 'invalid', message: 'the header E2b-Sandbox-Port must be a port from 1 to 65535' };
  }
  return { kind: 'sandbox', target: { sandboxId, port, path: hasPrefix ? withoutPrefix(url) : url } };
}

function fromHost(host: string | undefined, domains: readonly string[]): Omit<Target, 'path'> | undefined {
  const match = HOST.exec((host ?? '').toLowerCase().replace(/:\d+$/, ''));
  if (!match) return undefined;
  const [, portText, sandboxId = '', domain = ''] = match;
  const port = portOf(portText);
  if (port === undefined || (domains.length > 0 && !domains.includes(domain))) return undefined;
  return { sandboxId, port };
}

function withoutPrefix(url: string): string {
  const rest = url.replace(PROXY_PREFIX, '');
  return rest.startsWith('/') ? rest : `/${rest}`;
}
