/** `aenv start` and `aenv connect`: a running sandbox with a shell on this terminal. */
import type { AenvClient, Sandbox } from '@aenv/client';
import { AenvError } from '@aenv/std';
import type { ServerAccess } from '../credentials.ts';
import { ExitCode } from '../failures.ts';
import { type OutputFormat, printJson } from '../output.ts';
import { withStatus } from '../progress.ts';
import { guestOf, withClient } from '../session.ts';
import { attachShell, requireTerminal } from '../terminal.ts';

const GUEST_ANSWERS_MS = 30_000;
/** An open shell prolongs its sandbox this often. */
const PROLONG_MS = 60_000;
/** The API prolongs by at most this many seconds at a time. */
const LONGEST_REFRESH_SECONDS = 3600;

export interface StartOptions {
  detach?: boolean;
  cold?: boolean;
  secure?: boolean;
  allowOlder?: boolean;
  timeout: number;
  cpu?: number;
  memory?: number;
  disk?: number;
  output?: OutputFormat;
}

function create(client: AenvClient, target: string, options: StartOptions): Promise<Sandbox> {
  const { timeout, secure = false, allowOlder, cpu: cpuCount, memory: memoryMB, disk: diskSizeMB } = options;
  if (options.cold) {
    return client.sandboxes.createCold({ image: target, timeout, secure, cpuCount, memoryMB, diskSizeMB });
  }
  if (cpuCount !== undefined || memoryMB !== undefined || diskSizeMB !== undefined) {
    throw new AenvError('bad_request', '--cpu, --memory and --disk go with --cold only', {
      remedy: `A template brings its own sizes; set them when you build it: aenv pull IMAGE --cpu … --memory …`,
    });
  }
  return client.sandboxes.create({ templateID: target, timeout, secure, allowOlder });
}

/** Opens a shell and keeps the sandbox alive meanwhile; throws the shell's exit code when it is not 0. */
async function openShell(
  client: AenvClient,
  server: ServerAccess,
  sandbox: Sandbox,
  options: { timeout: number; user?: string },
): Promise<void> {
  await using guest = guestOf(server, sandbox, options.user);
  await withStatus('waiting for the sandbox', () => guest.waitHealthy(GUEST_ANSWERS_MS));
  const seconds = Math.min(options.timeout, LONGEST_REFRESH_SECONDS);
  const interval = Math.min(PROLONG_MS, (seconds * 1000) / 2);
  // A failure shows itself on the shell's own stream.
  const prolong = setInterval(
    () => void client.sandboxes.refresh(sandbox.sandboxID, seconds).catch(() => {}),
    interval,
  );
  try {
    const code = await attachShell(guest);
    if (code !== 0) throw new ExitCode(code);
  } finally {
    clearInterval(prolong);
  }
}

export async function start(target: string, options: StartOptions): Promise<void> {
  if (!options.detach) requireTerminal('Use -d to start it without a shell.');
  await withClient(async (client, server) => {
    const sandbox = await withStatus(`starting ${target}`, () => create(client, target, options));
    if (options.detach) {
      if (options.output === 'json') printJson(sandbox);
      else process.stdout.write(`${sandbox.sandboxID}\n`);
      return;
    }
    process.stderr.write(`Started ${sandbox.sandboxID}; it ends ${options.timeout} s after the shell is left\n`);
    await openShell(client, server, sandbox, options);
  });
}

export async function connect(id: string, options: { timeout: number; user?: string }): Promise<void> {
  requireTerminal('Use `aenv exec` to run a command without one.');
  await withClient(async (client, server) => {
    const sandbox = await withStatus(`connecting to ${id}`, () => client.sandboxes.connect(id, options.timeout));
    await openShell(client, server, sandbox, options);
  });
}
