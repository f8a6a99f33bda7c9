/** The real guest daemon as a process of this machine, for tests. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';

const BINARY = new URL('../../../../aenvd/bin/aenvd', import.meta.url).pathname;

/** Why tests that need the daemon cannot run here; undefined when they can. */
export const aenvdMissing: string | undefined = existsSync(BINARY)
  ? undefined
  : 'aenvd/bin/aenvd is not built; `make setup` builds it';

export interface RunningAenvd {
  port: number;
  process: ChildProcess;
  [Symbol.asyncDispose](): Promise<void>;
}

async function portOf(child: ChildProcess): Promise<number> {
  if (!child.stderr) throw new Error('aenvd has no standard error');
  for await (const line of createInterface({ input: child.stderr })) {
    const port = / listening on \S*:(\d+)$/.exec(line)?.[1];
    if (port === undefined) continue;
    child.stderr.resume();
    return Number(port);
  }
  throw new Error('aenvd ended before it listened');
}

/** Listens on a free port of 127.0.0.1; changes nothing of the machine. */
export async function startAenvd(): Promise<RunningAenvd> {
  const child = spawn(BINARY, ['-host', '127.0.0.1', '-port', '0', '-no-init'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  try {
    return { port: await portOf(child), process: child, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
