/** Entry of the `aenv` program; `bin/aenv` runs it. */
import { run } from './program.ts';

process.exitCode = await run(process.argv.slice(2));
