/** Entry of the `aenv` program; `bin/aenv` runs it. */
import { isSystemError } from '@aenv/std';
import { run } from './program.ts';

/** Exit code of a program that SIGPIPE ended; Node ignores the signal, and so would go on for nobody. */
const SIGPIPE_EXIT = 141;

for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error) => process.exit(isSystemError(error, 'EPIPE') ? SIGPIPE_EXIT : 1));
}
process.exitCode = await run(process.argv.slice(2));
