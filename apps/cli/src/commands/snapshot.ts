/** Copies of sandboxes: `aenv snapshot`, `fork` and `rollback`. */
import type { Snapshot } from '@aenv/client';
import { ExitCode } from '../failures.ts';
import { type Column, type OutputFormat, outputFormat, printJson, printRows, relativeTime } from '../output.ts';
import { withStatus } from '../progress.ts';
import { withClient } from '../session.ts';

const COLUMNS: Column<Snapshot>[] = [
  { title: 'SNAPSHOT', value: ({ snapshotID }) => snapshotID },
  { title: 'OF SANDBOX', value: ({ sandboxID }) => sandboxID },
  { title: 'STATE', value: ({ state, reason }) => (reason === undefined ? state : `${state}: ${reason}`) },
  { title: 'HAS', value: ({ memory }) => (memory ? 'memory, disk' : 'disk') },
  { title: 'CPU', value: ({ cpuCount }) => String(cpuCount), align: 'right' },
  { title: 'MEM (MiB)', value: ({ memoryMB }) => String(memoryMB), align: 'right' },
  { title: 'DISK (MiB)', value: ({ diskSizeMB }) => String(diskSizeMB), align: 'right' },
  { title: 'TAKEN', value: ({ createdAt }) => relativeTime(Date.parse(createdAt)) },
];

export async function createSnapshot(id: string, options: { name?: string; memory: boolean }): Promise<void> {
  const { snapshotID } = await withClient((client) =>
    withStatus(`taking a snapshot of ${id}`, () => client.snapshots.create(id, options)),
  );
  process.stdout.write(`${snapshotID}\n`);
}

export async function listSnapshots(options: { sandbox?: string; output?: OutputFormat }): Promise<void> {
  const query = options.sandbox === undefined ? {} : { sandboxID: options.sandbox };
  const snapshots = await withClient((client) =>
    client.snapshots.list({ ...query, states: ['creating', 'ready', 'failed'] }),
  );
  printRows(outputFormat(options.output), snapshots, COLUMNS, 'No snapshots. Take one: aenv snapshot create ID');
}

export async function deleteSnapshot(name: string): Promise<void> {
  await withClient((client) => client.snapshots.delete(name));
  process.stdout.write(`Deleted snapshot ${name}\n`);
}

/** Prints the ids of the children that started; the exit code is 1 when one did not. */
export async function fork(
  id: string,
  options: { count: number; timeout: number; output?: OutputFormat },
): Promise<void> {
  const results = await withClient((client) =>
    withStatus(`forking ${id}`, () => client.snapshots.fork(id, options.count, options.timeout)),
  );
  if (outputFormat(options.output) === 'json') printJson(results);
  else for (const { sandbox } of results) if (sandbox) process.stdout.write(`${sandbox.sandboxID}\n`);
  const failed = results.filter(({ error }) => error !== undefined);
  for (const { error } of failed) process.stderr.write(`aenv: a fork did not start: ${error?.message}\n`);
  if (failed.length > 0) throw new ExitCode(1);
}

export async function rollback(id: string, snapshot: string, options: { allowOlder?: boolean }): Promise<void> {
  await withClient((client) =>
    withStatus(`rolling back ${id}`, () => client.snapshots.rollback(id, snapshot, options)),
  );
  process.stdout.write(`${id} is ${snapshot} again\n`);
}
