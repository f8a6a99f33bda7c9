/** Commands on sandboxes that are one request each. */
import type { AenvClient, SandboxState, SandboxSummary } from '@aenv/client';
import { AenvError } from '@aenv/std';
import { ExitCode, reportFailure } from '../failures.ts';
import { type Column, type OutputFormat, outputFormat, printRows, relativeTime } from '../output.ts';
import { withStatus } from '../progress.ts';
import { withClient } from '../session.ts';

const COLUMNS: Column<SandboxSummary>[] = [
  { title: 'SANDBOX ID', value: ({ sandboxID }) => sandboxID },
  { title: 'TEMPLATE', value: ({ alias, templateID }) => alias ?? templateID },
  { title: 'STATE', value: ({ state }) => state },
  { title: 'CPU', value: ({ cpuCount }) => String(cpuCount), align: 'right' },
  { title: 'MEM (MiB)', value: ({ memoryMB }) => String(memoryMB), align: 'right' },
  { title: 'DISK (MiB)', value: ({ diskSizeMB }) => String(diskSizeMB), align: 'right' },
  { title: 'STARTED', value: ({ startedAt }) => relativeTime(Date.parse(startedAt)) },
  { title: 'ENDS', value: ({ state, endAt }) => (state === 'paused' ? '-' : relativeTime(Date.parse(endAt))) },
];

export async function list(options: { state?: SandboxState; output?: OutputFormat }): Promise<void> {
  const query = options.state === undefined ? {} : { states: [options.state] };
  const sandboxes = await withClient((client) => client.sandboxes.list(query));
  printRows(outputFormat(options.output), sandboxes, COLUMNS, 'No sandboxes. Start one: aenv start TEMPLATE');
}

export async function pause(id: string, { memory }: { memory: boolean }): Promise<void> {
  await withClient((client) => withStatus(`pausing ${id}`, () => client.sandboxes.pause(id, { memory })));
  process.stdout.write(`Paused ${id}\n`);
}

export async function resume(id: string, { timeout, memory }: { timeout: number; memory: boolean }): Promise<void> {
  const connect = (client: AenvClient) => client.sandboxes.connect(id, timeout, { memory });
  await withClient((client) => withStatus(`resuming ${id}`, () => connect(client)));
  process.stdout.write(`Resumed ${id}\n`);
}

export async function setTimeout(id: string, seconds: number): Promise<void> {
  await withClient((client) => client.sandboxes.setTimeout(id, seconds));
  process.stdout.write(`${id} ends in ${seconds} s\n`);
}

/** Goes on with the others when one cannot be deleted. */
export async function remove(ids: string[]): Promise<void> {
  const failed = await withClient(async (client) => {
    let failures = 0;
    for (const id of ids) {
      try {
        await withStatus(`deleting ${id}`, () => client.sandboxes.kill(id));
        process.stdout.write(`Deleted ${id}\n`);
      } catch (error) {
        if (!(error instanceof AenvError) || error.code === 'server_unreachable') throw error;
        reportFailure(error, false);
        failures += 1;
      }
    }
    return failures;
  });
  if (failed > 0) throw new ExitCode(1);
}
