/** `aenv --help` against a Node that does nothing. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { alternate, type Result, timed } from './statistics.ts';

const SAMPLES = 15;
const AENV = join(import.meta.dirname, '..', 'bin', 'aenv');

export async function commandLineStart(): Promise<Result[]> {
  const run = async (program: string, args: string[]) => {
    const { ms } = await timed(async () => execFileSync(program, args, { stdio: 'ignore' }));
    return ms;
  };
  const figures = await alternate(
    SAMPLES,
    () => run(AENV, ['--help']),
    () => run(process.execPath, ['-e', '0']),
  );
  return [
    {
      name: 'aenv --help (floor: node -e 0)',
      ...figures,
      unit: 'ms',
      goal: { of: 'ratio', limit: 3, kind: 'at most' },
    },
  ];
}
