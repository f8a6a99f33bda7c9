/** `aenv node`: what the server's machine has to give, and what it has promised. */
import type { Node } from '@aenv/client';
import { formatBytes, type OutputFormat, outputFormat, printJson } from '../output.ts';
import { withClient } from '../session.ts';

const size = (mb: number): string => formatBytes(mb * 2 ** 20);

function lines({ running, maxRunning, waiting, memoryMB, freeDiskMB }: Node): [string, string][] {
  const { total, free, promised, limit } = memoryMB;
  return [
    ['Sandboxes', `${running} of ${maxRunning} running, ${waiting} waiting for room`],
    ['Promised', `${size(promised)} of ${size(limit)} (${(promised / total).toFixed(2)} × the machine's memory)`],
    ['Memory', `${size(free)} of ${size(total)} free`],
    ['Disk', `${size(freeDiskMB)} free`],
  ];
}

export async function node(options: { output?: OutputFormat }): Promise<void> {
  const view = await withClient((client) => client.node());
  if (outputFormat(options.output) === 'json') printJson(view);
  else for (const [name, value] of lines(view)) process.stdout.write(`${name.padEnd(10)} ${value}\n`);
}
