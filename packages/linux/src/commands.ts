/** Short system commands that the launcher needs: argument arrays, never a shell string made from data. */
import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { AenvError, isSystemError } from '@aenv/std';

/** Fixed, so that nobody's PATH decides what runs with privileges. */
const DIRECTORIES = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
const OUTPUT_LIMIT = 1 << 20;

/** What Debian and Ubuntu call the package of a program. */
const PACKAGES: Record<string, string> = {
  ip: 'iproute2',
  nft: 'nftables',
  nsenter: 'util-linux',
  setpriv: 'util-linux',
  unshare: 'util-linux',
  flock: 'util-linux',
  mke2fs: 'e2fsprogs',
  resize2fs: 'e2fsprogs',
  'qemu-img': 'qemu-utils',
  'qemu-system-x86_64': 'qemu-system-x86',
};

/** Absolute path of a system program, or undefined. */
export function lookUpProgram(name: string): string | undefined {
  for (const directory of DIRECTORIES) {
    const path = `${directory}/${name}`;
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not in this directory.
    }
  }
  return undefined;
}

/** Absolute path of a system program; `host_missing_tool` with the package to install. */
export function findProgram(name: string): string {
  const path = lookUpProgram(name);
  if (path) return path;
  throw new AenvError('host_missing_tool', `the program ${name} is not installed`, {
    remedy: `Install it: apt-get install ${PACKAGES[name] ?? name}`,
  });
}

export interface CommandOptions {
  stdin?: string;
  /** Milliseconds until it is killed; 10 s by default. */
  timeoutMs?: number;
}

export interface CommandResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs a program to its end whatever its exit code; `timeout` when it took too long. */
export function runCommand(name: string, args: string[], options: CommandOptions = {}): Promise<CommandResult> {
  const { stdin, timeoutMs = 10_000 } = options;
  const child = spawn(findProgram(name), args, { timeout: timeoutMs, killSignal: 'SIGKILL', env: COMMAND_ENVIRONMENT });
  const output = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      if (output[stream].length < OUTPUT_LIMIT) output[stream] += text;
    });
  }
  // A program that ends before it has read its input says so by its exit code.
  child.stdin.on('error', () => {});
  child.stdin.end(stdin ?? '');
  return new Promise((resolve, reject) => {
    child.on('error', (error) => reject(spawnError(name, error)));
    child.on('close', (code) => {
      if (child.killed) reject(new AenvError('timeout', `${name} did not finish within ${timeoutMs} ms`));
      else resolve({ code, ...output });
    });
  });
}

/** As `runCommand`, but an exit code other than 0 is an `internal` error with what the program said. */
export async function mustRun(name: string, args: string[], options?: CommandOptions): Promise<string> {
  const { code, stdout, stderr } = await runCommand(name, args, options);
  if (code === 0) return stdout;
  throw new AenvError('internal', `${name} failed with exit code ${code}: ${stderr.trim().slice(0, 2000)}`);
}

export const COMMAND_ENVIRONMENT = { PATH: DIRECTORIES.join(':'), LANG: 'C.UTF-8' };

export function spawnError(name: string, error: Error): AenvError {
  if (isSystemError(error, 'ENOENT')) {
    return new AenvError('host_missing_tool', `the program ${name} is not installed`, { cause: error });
  }
  if (isSystemError(error, 'EAGAIN') || isSystemError(error, 'ENOMEM')) {
    return new AenvError('capacity_exhausted', `the machine has no room for another process (${error.message})`);
  }
  return AenvError.from(error);
}
