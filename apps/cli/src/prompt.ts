/** Questions on a terminal. */
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { ExitCode } from './failures.ts';

/** Exit code of a program that Ctrl-C ended. */
const INTERRUPTED = 130;

async function question(prompt: string, output: NodeJS.WritableStream): Promise<string> {
  const lines = createInterface({ input: process.stdin, output, terminal: true });
  try {
    return (
      await new Promise<string>((resolve, reject) => {
        lines.once('SIGINT', () => reject(new ExitCode(INTERRUPTED)));
        lines.once('close', () => reject(new ExitCode(INTERRUPTED)));
        lines.question(prompt).then(resolve, reject);
      })
    ).trim();
  } finally {
    lines.close();
  }
}

export function ask(prompt: string): Promise<string> {
  return question(prompt, process.stderr);
}

/** What is typed does not appear. */
export async function askSecret(prompt: string): Promise<string> {
  // Reading turns the terminal's echo off, so it comes before the prompt that makes people type.
  const answer = question('', new Writable({ write: (_chunk, _encoding, done) => done() }));
  process.stderr.write(prompt);
  try {
    return await answer;
  } finally {
    process.stderr.write('\n');
  }
}
