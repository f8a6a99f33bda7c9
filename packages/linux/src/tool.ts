/** One local program run to its end with a stream as its input, for the processes that do the long work (image pulls). */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { COMMAND_ENVIRONMENT, findProgram, spawnError } from './commands.ts';

/** What is kept of each output stream: the end, where programs say what went wrong. */
const OUTPUT_TAIL = 64 << 10;

export interface ToolOptions {
  /** Becomes the program's input; read no faster than the program reads. Empty by default. */
  stdin?: AsyncIterable<Uint8Array>;
  /** Added to a minimal environment. */
  env?: Record<string, string>;
  /** Ends the program with SIGKILL; the call then rejects with the signal's reason. */
  signal?: AbortSignal;
}

export interface ToolResult {
  /** Null when a signal ended the program. */
  code: number | null;
  /** The last 64 KiB of each. */
  stdout: string;
  stderr: string;
}

/**
 * Runs a system program with an argument array, never through a shell. Resolves whatever its exit code; rejects with
 * `host_missing_tool`, with the error of `stdin`, or when aborted. The program is gone in every case.
 */
export async function runTool(name: string, args: string[], options: ToolOptions = {}): Promise<ToolResult> {
  options.signal?.throwIfAborted();
  const child = spawn(findProgram(name), args, { env: { ...COMMAND_ENVIRONMENT, ...options.env } });
  const output = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      output[stream] = (output[stream] + text).slice(-OUTPUT_TAIL);
    });
  }
  const kill = () => child.kill('SIGKILL');
  options.signal?.addEventListener('abort', kill);
  const closed = new Promise<number | null>((resolve, reject) => {
    child.on('error', (error) => reject(spawnError(name, error)));
    child.on('close', resolve);
  });
  const fed = feed(child.stdin, options.stdin).catch((error: unknown) => {
    // A program must not take a stream that broke off for a complete one.
    kill();
    throw error;
  });
  try {
    const [ended, input] = await Promise.allSettled([closed, fed]);
    options.signal?.throwIfAborted();
    if (input.status === 'rejected') throw input.reason;
    if (ended.status === 'rejected') throw ended.reason;
    return { code: ended.value, ...output };
  } finally {
    options.signal?.removeEventListener('abort', kill);
  }
}

/** Ends quietly when the program stops reading: its exit code tells why. Rejects when `source` does. */
async function feed(stdin: Writable, source: AsyncIterable<Uint8Array> | undefined): Promise<void> {
  let isOpen = true;
  const gone = new Promise<void>((resolve) => {
    const close = () => {
      isOpen = false;
      resolve();
    };
    stdin.on('error', close).on('close', close);
  });
  for await (const chunk of source ?? []) {
    if (!isOpen) return;
    if (!stdin.write(chunk)) await Promise.race([once(stdin, 'drain').catch(() => {}), gone]);
  }
  stdin.end();
}
