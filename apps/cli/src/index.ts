/** The `aenv` command as a function of its arguments. */
export { run } from './program.ts';
