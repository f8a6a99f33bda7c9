/** A shell of a sandbox on this terminal: raw mode, resizing, and everything as it was afterwards. */
import type { GuestClient, GuestProcess, TerminalSize } from '@aenv/guest';
import { AenvError } from '@aenv/std';
import { InputQueue } from './input-queue.ts';
import { writeTo } from './streams.ts';

/** Terminals that images without a terminfo package know, too. */
const KNOWN_TERMINALS = new Set(['xterm', 'xterm-256color', 'screen', 'screen-256color', 'linux', 'vt100', 'dumb']);

/** The image's best shell, as a login shell. */
const SHELL = 'if command -v bash >/dev/null 2>&1; then exec bash -l; else exec sh -l; fi';

/** Signals that end the CLI while the terminal is in raw mode, and the exit codes that stand for them. */
const DEADLY_SIGNALS = { SIGHUP: 129, SIGTERM: 143 } as const;

export function requireTerminal(remedy: string): void {
  if (process.stdin.isTTY && process.stdout.isTTY) return;
  throw new AenvError('bad_request', 'a shell needs a terminal, and this is none', { remedy });
}

function terminalSize(): TerminalSize {
  const { columns, rows } = process.stdout;
  return { cols: columns || 80, rows: rows || 24 };
}

function terminalVariables(): Record<string, string> {
  const { TERM = '', COLORTERM } = process.env;
  return {
    TERM: KNOWN_TERMINALS.has(TERM) ? TERM : 'xterm-256color',
    LANG: 'C.UTF-8',
    ...(COLORTERM === undefined ? {} : { COLORTERM }),
  };
}

/** Connects keyboard and window size to the process; returns what undoes it. */
function wire(shell: GuestProcess): () => void {
  const { stdin, stdout } = process;
  const input = new InputQueue(shell);
  const onData = (bytes: Buffer) => input.push(bytes);
  // A resize that comes too late for the process does no harm.
  const onResize = () => void shell.resize(terminalSize()).catch(() => {});
  const restore = () => {
    stdin.setRawMode(false);
    stdin.off('data', onData);
    stdin.pause();
    stdout.off('resize', onResize);
    for (const signal of Object.keys(DEADLY_SIGNALS)) process.off(signal, onSignal);
  };
  const onSignal = (signal: keyof typeof DEADLY_SIGNALS) => {
    restore();
    process.exit(DEADLY_SIGNALS[signal]);
  };
  stdin.setRawMode(true);
  stdin.on('data', onData);
  stdin.resume();
  stdout.on('resize', onResize);
  for (const signal of Object.keys(DEADLY_SIGNALS)) process.on(signal, onSignal);
  return restore;
}

/** Returns the shell's exit code; `guest_unreachable` when the sandbox goes away under it. */
export async function attachShell(guest: GuestClient): Promise<number> {
  const size = terminalSize();
  const shell = await guest.processes.start({
    cmd: '/bin/sh',
    args: ['-c', SHELL],
    envs: terminalVariables(),
    pty: size,
    onOutput: (_stream, bytes) => writeTo(process.stdout, bytes),
  });
  const restore = wire(shell);
  try {
    return (await shell.exit).exitCode;
  } catch (error) {
    process.stderr.write('\r\n');
    throw error;
  } finally {
    restore();
  }
}
