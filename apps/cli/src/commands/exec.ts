/** `aenv exec`: one command, its streams and its exit code. */
import type { GuestProcess } from '@aenv/guest';
import { AenvError } from '@aenv/std';
import { ExitCode } from '../failures.ts';
import { withStatus } from '../progress.ts';
import { withClient, withRunningGuest } from '../session.ts';
import { writeTo } from '../streams.ts';

export interface ExecOptions {
  user?: string;
  cwd?: string;
  checkpoint?: boolean;
}

/** Copies our input to the process until one of them ends. */
async function feed(remote: GuestProcess): Promise<void> {
  for await (const chunk of process.stdin) await remote.sendInput(chunk as Buffer);
  await remote.closeStdin();
}

/** A process that ended no longer takes input: its exit code tells the story. */
function ignoreEnded(error: unknown): void {
  if (error instanceof AenvError && (error.code === 'not_found' || error.code === 'conflict')) return;
  throw error;
}

/** The first Ctrl-C asks the command to end, the next one kills it; so does a reader that goes away. */
function forwardInterrupts(remote: GuestProcess): () => void {
  let asked = false;
  const end = () => {
    void remote.kill(asked ? 'SIGKILL' : 'SIGTERM').catch(() => {});
    asked = true;
  };
  process.on('SIGINT', end);
  process.on('SIGTERM', end);
  process.stdout.on('error', end);
  process.stderr.on('error', end);
  return () => {
    process.off('SIGINT', end);
    process.off('SIGTERM', end);
  };
}

/** Said on stderr: stdout is the command's. */
async function takeCheckpoint(id: string): Promise<void> {
  const { snapshotID } = await withClient((client) =>
    withStatus(`taking a snapshot of ${id}`, () => client.snapshots.create(id)),
  );
  process.stderr.write(`aenv: checkpoint ${snapshotID}; back to it: aenv rollback ${id} ${snapshotID}\n`);
}

export async function exec(id: string, command: string[], options: ExecOptions): Promise<void> {
  const [cmd = '', ...args] = command;
  if (options.checkpoint) await takeCheckpoint(id);
  const exit = await withRunningGuest(id, options.user, async (guest) => {
    const remote = await guest.processes.start({
      cmd,
      args,
      cwd: options.cwd,
      stdin: true,
      onOutput: (stream, bytes) => writeTo(stream === 'stderr' ? process.stderr : process.stdout, bytes),
    });
    const stopForwarding = forwardInterrupts(remote);
    const fed = remote.pid === 0 ? Promise.resolve() : feed(remote).catch(ignoreEnded);
    const inputFailed = fed.then(() => new Promise<never>(() => {}));
    try {
      return await Promise.race([remote.exit, inputFailed]);
    } finally {
      stopForwarding();
      process.stdin.destroy();
    }
  });
  if (exit.error !== undefined) process.stderr.write(`aenv: ${cmd}: ${exit.error}\n`);
  if (exit.exitCode !== 0) throw new ExitCode(exit.exitCode);
}
