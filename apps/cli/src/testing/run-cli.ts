/** Runs `bin/aenv` as a person would: a process with its own HOME. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { spawn as spawnInTerminal } from '@lydell/node-pty';
import { API_KEY } from './fake-server.ts';

export const AENV = new URL('../../../../bin/aenv', import.meta.url).pathname;

export interface CliRun {
  code: number | null;
  stdout: Buffer;
  text: string;
  stderr: string;
}

export interface CliOptions {
  home: string;
  url?: string;
  apiKey?: string;
  cwd?: string;
  input?: string | Buffer;
}

/** What every run gets: no state of the machine's user, and compiled code shared between tests. */
export function cliEnvironment({ home, url, apiKey = API_KEY }: CliOptions): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    HOME: home,
    AENV_HOME: join(home, 'no-server'),
    NODE_COMPILE_CACHE: join(tmpdir(), `aenv-test-cache-${process.getuid?.()}`),
    ...(url === undefined ? {} : { AENV_URL: url, AENV_API_KEY: apiKey }),
  };
}

export async function runCli(args: string[], options: CliOptions): Promise<CliRun> {
  const child = spawn(AENV, args, { cwd: options.cwd ?? options.home, env: cliEnvironment(options) });
  child.stdin.on('error', () => {});
  child.stdin.end(options.input ?? '');
  const [stdout, stderr, [code]] = await Promise.all([
    buffer(child.stdout),
    buffer(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  return { code, stdout, text: stdout.toString(), stderr: stderr.toString() };
}

export interface TerminalRun {
  /** Everything that appeared so far. */
  screen(): string;
  type(text: string): void;
  resize(columns: number, rows: number): void;
  exited: Promise<number>;
  kill(signal: string): void;
}

/** The same on a terminal of 90 × 25. */
export function runInTerminal(args: string[], options: CliOptions, program = AENV): TerminalRun {
  const env = { ...cliEnvironment(options), TERM: 'xterm-256color' };
  const terminal = spawnInTerminal(program, args, { cols: 90, rows: 25, cwd: options.cwd ?? options.home, env });
  let screen = '';
  terminal.onData((text) => {
    screen += text;
  });
  return {
    screen: () => screen,
    type: (text) => terminal.write(text),
    resize: (columns, rows) => terminal.resize(columns, rows),
    exited: new Promise((resolve) => terminal.onExit(({ exitCode }) => resolve(exitCode))),
    kill: (signal) => terminal.kill(signal),
  };
}

/** A directory that serves as HOME, removed afterwards. */
export async function withHome(work: (home: string) => Promise<void>): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), 'aenv-cli-'));
  try {
    await work(home);
  } finally {
    await rm(home, { recursive: true });
  }
}
