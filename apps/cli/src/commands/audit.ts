/** `aenv audit`: what is on the server's machine beside what it knows of. */
import type { AuditReport } from '@aenv/client';
import { ExitCode } from '../failures.ts';
import { type Column, type OutputFormat, outputFormat, printRows } from '../output.ts';
import { withStatus } from '../progress.ts';
import { withClient } from '../session.ts';

type Finding = AuditReport['findings'][number];

/** What is missing cannot be removed. */
const isStray = ({ kind }: Finding): boolean => !kind.startsWith('missing_');

const COLUMNS: Column<Finding>[] = [
  { title: 'KIND', value: ({ kind }) => kind },
  { title: 'NAME', value: ({ name }) => name },
  { title: 'DETAIL', value: ({ detail }) => detail },
  { title: 'REMOVED', value: (finding) => (isStray(finding) ? (finding.removed ? 'yes' : 'no') : '-') },
];

/** Ends with 1 when something is left that should not be so. */
export async function audit(options: { repair?: boolean; output?: OutputFormat }): Promise<void> {
  const repair = options.repair ?? false;
  const { findings } = await withClient((client) => withStatus('comparing', () => client.audit(repair)));
  printRows(outputFormat(options.output), findings, COLUMNS, 'Clean: everything on the machine belongs to a record.');
  const left = findings.filter(({ removed }) => removed !== true);
  if (left.some(isStray) && !repair) process.stderr.write('`aenv audit --repair` removes what belongs to nobody.\n');
  if (left.some((finding) => !isStray(finding))) {
    process.stderr.write('What is missing is lost: delete the sandboxes and snapshots that need it.\n');
  }
  if (left.length > 0) throw new ExitCode(1);
}
