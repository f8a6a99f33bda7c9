/** How a failure ends the program: what the reader sees, and the exit code. */
import { styleText } from 'node:util';
import { AenvError } from '@aenv/std';

/** Ends the program with this code and no message: everything was said already. */
export class ExitCode extends Error {
  readonly code: number;

  constructor(code: number) {
    super(`exit code ${code}`);
    this.code = code;
  }
}

/** Errors of commands get 1, wrong usage 2 (commander's), a remote command its own code. */
export function reportFailure(reason: unknown, json: boolean): number {
  if (reason instanceof ExitCode) return reason.code;
  const error = AenvError.from(reason);
  if (json) {
    process.stderr.write(`${JSON.stringify({ error: error.toJSON() })}\n`);
    return 1;
  }
  const label = styleText(['bold', 'red'], 'error:', { stream: process.stderr });
  process.stderr.write(`${label} ${error.message} [${error.code}]\n`);
  if (error.remedy !== undefined) process.stderr.write(`  ${error.remedy}\n`);
  if (process.env.AENV_DEBUG) process.stderr.write(`${reason instanceof Error ? reason.stack : String(reason)}\n`);
  return 1;
}
