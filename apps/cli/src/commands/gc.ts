/** `aenv gc`: frees what can be made again and nothing needs. */
import type { Garbage } from '@aenv/client';
import { type Column, formatBytes, type OutputFormat, outputFormat, printRows } from '../output.ts';
import { withStatus } from '../progress.ts';
import { withClient } from '../session.ts';

const COLUMNS: Column<Garbage>[] = [
  { title: 'KIND', value: ({ kind }) => kind },
  { title: 'NAME', value: ({ name }) => name },
  { title: 'SIZE', value: ({ bytes }) => formatBytes(bytes), align: 'right' },
  { title: 'WHY', value: ({ why }) => why },
];

export async function gc(options: { dryRun?: boolean; output?: OutputFormat }): Promise<void> {
  const dryRun = options.dryRun ?? false;
  const garbage = await withClient((client) => withStatus('looking', () => client.collectGarbage(dryRun)));
  printRows(outputFormat(options.output), garbage, COLUMNS, 'There is nothing to free.');
  if (garbage.length === 0) return;
  const size = formatBytes(garbage.reduce((sum, { bytes }) => sum + bytes, 0));
  process.stderr.write(dryRun ? `${size} would be freed\n` : `${size} freed\n`);
}
