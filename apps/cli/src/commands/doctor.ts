/** `aenv doctor`: the server's report on its machine. */
import { styleText } from 'node:util';
import type { DoctorReport } from '@aenv/client';
import { ExitCode } from '../failures.ts';
import { type OutputFormat, outputFormat, printable, printJson } from '../output.ts';
import { withStatus } from '../progress.ts';
import { withClient } from '../session.ts';

type Finding = DoctorReport['findings'][number];

const MARKS = { ok: styleText('green', 'ok  '), warn: styleText('yellow', 'warn'), fail: styleText('red', 'FAIL') };

function describe({ check, status, detail, remedy }: Finding, width: number): string {
  const line = `${MARKS[status]}  ${check.padEnd(width)}  ${printable(detail)}`;
  return remedy === undefined ? line : `${line}\n${' '.repeat(8 + width)}→ ${printable(remedy)}`;
}

/** Fails when the machine lacks something that sandboxes need. */
export async function doctor(options: { output?: OutputFormat }): Promise<void> {
  const { findings } = await withClient((client) => withStatus('looking at the machine', () => client.doctor()));
  if (outputFormat(options.output) === 'json') printJson({ findings });
  else {
    const width = Math.max(...findings.map(({ check }) => check.length));
    process.stdout.write(`${findings.map((finding) => describe(finding, width)).join('\n')}\n`);
  }
  if (findings.some(({ status }) => status === 'fail')) throw new ExitCode(1);
}
