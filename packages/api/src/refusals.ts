/** Request fields of E2B's API that ask for what this server does not do. Ignoring them would break a promise silently. */
import type { Schema } from '@aenv/protocol';
import { AenvError } from '@aenv/std';

type SandboxRequest = Schema<'NewSandbox'> | Schema<'NewSandboxV2'> | Schema<'NewColdSandbox'>;

const OMIT = 'Leave it out.';

/** Throws `unsupported` when the request asks for `feature`. */
export function refuse(asked: boolean, feature: string, remedy: string = OMIT): void {
  if (asked) throw new AenvError('unsupported', `${feature} is not supported.`, { remedy });
}

function isFilled(value: object | null | undefined): boolean {
  return value !== undefined && value !== null && Object.keys(value).length > 0;
}

function refuseNetwork(network: Schema<'Network'>): void {
  const policy = 'Use allow_internet_access, which is all or nothing.';
  refuse(network.allowPublicTraffic === false, 'network.allowPublicTraffic: false', 'Use a secure sandbox.');
  refuse(isFilled(network.allowOut), 'network.allowOut', policy);
  refuse(isFilled(network.denyOut), 'network.denyOut', policy);
  refuse((network.egressProxy ?? null) !== null, 'network.egressProxy');
  refuse(network.maskRequestHost !== undefined, 'network.maskRequestHost');
  refuse(isFilled(network.rules), 'network.rules', policy);
  refuse(isFilled(network.httpsPorts), 'network.httpsPorts', 'Serve plain HTTP in the sandbox.');
}

export function refuseForSandbox(body: SandboxRequest): void {
  if (body.network !== undefined) refuseNetwork(body.network);
  refuse(isFilled(body.volumeMounts), 'volumeMounts');
  if ('mcp' in body) refuse((body.mcp ?? null) !== null, 'mcp', 'Start the MCP server inside the sandbox.');
  if ('iam' in body) refuse(isFilled(body.iam), 'iam', 'Pass credentials with envVars.');
}
