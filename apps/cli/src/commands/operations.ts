/** `aenv ops`: what is done to sandboxes and builds, and what was done lately. */
import type { Operation } from '@aenv/client';
import { type Column, type OutputFormat, outputFormat, printRows, relativeTime } from '../output.ts';
import { withClient } from '../session.ts';

function took({ startedAt, endedAt }: Operation): string {
  if (endedAt === undefined) return '-';
  return `${((Date.parse(endedAt) - Date.parse(startedAt)) / 1000).toFixed(2)} s`;
}

const COLUMNS: Column<Operation>[] = [
  { title: 'OPERATION', value: ({ operationID }) => operationID },
  { title: 'KIND', value: ({ kind }) => kind },
  { title: 'OF', value: ({ sandboxID, buildID }) => sandboxID ?? buildID ?? '-' },
  { title: 'PHASE', value: ({ phase }) => phase },
  { title: 'STATE', value: ({ state }) => state },
  { title: 'STARTED', value: ({ startedAt }) => relativeTime(Date.parse(startedAt)) },
  { title: 'TOOK', value: took, align: 'right' },
  { title: 'ERROR', value: ({ error }) => error?.message ?? '' },
];

export async function operations(
  sandboxID: string | undefined,
  options: { all?: boolean; output?: OutputFormat },
): Promise<void> {
  const query = {
    ...(sandboxID === undefined ? {} : { sandboxID }),
    ...(options.all || sandboxID !== undefined ? {} : { state: ['running' as const] }),
  };
  const found = await withClient((client) => client.operations(query));
  printRows(outputFormat(options.output), found, COLUMNS, 'Nothing is under way. --all shows what has ended.');
}
