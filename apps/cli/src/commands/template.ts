/** `aenv template list` and `delete`. */
import type { Template } from '@aenv/client';
import { type Column, type OutputFormat, outputFormat, printRows, relativeTime } from '../output.ts';
import { withClient } from '../session.ts';

const COLUMNS: Column<Template>[] = [
  { title: 'NAME', value: ({ names }) => names[0] ?? '-' },
  { title: 'TEMPLATE ID', value: ({ templateID }) => templateID },
  { title: 'STATUS', value: ({ buildStatus }) => buildStatus },
  { title: 'CPU', value: ({ cpuCount }) => String(cpuCount), align: 'right' },
  { title: 'MEM (MiB)', value: ({ memoryMB }) => String(memoryMB), align: 'right' },
  { title: 'DISK (MiB)', value: ({ diskSizeMB }) => (diskSizeMB === 0 ? '-' : String(diskSizeMB)), align: 'right' },
  { title: 'UPDATED', value: ({ updatedAt }) => relativeTime(Date.parse(updatedAt)) },
];

export async function listTemplates(options: { output?: OutputFormat }): Promise<void> {
  const templates = await withClient((client) => client.templates.list());
  printRows(outputFormat(options.output), templates, COLUMNS, 'No templates. Make one: aenv pull IMAGE');
}

export async function deleteTemplate(name: string): Promise<void> {
  await withClient((client) => client.templates.delete(name));
  process.stdout.write(`Deleted template ${name}\n`);
}
