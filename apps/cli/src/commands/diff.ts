/** `aenv snapshot diff`: what is other in one snapshot than in another. */
import type { SnapshotDiff } from '@aenv/client';
import { type OutputFormat, outputFormat, printable, printJson } from '../output.ts';
import { withStatus } from '../progress.ts';
import { withClient } from '../session.ts';

const SIGNS = { added: '+', changed: '~', removed: '-' };

/** One line for each file, and one about the memory. */
export function diffLines({ files, memory }: SnapshotDiff): string[] {
  const changed = memory && `memory: ${memory.changedMB.toFixed(1)} MiB of ${memory.totalMB} differ`;
  const lines = files.map(({ path, kind }) => `${SIGNS[kind]} ${printable(path)}`);
  return [
    ...(lines.length > 0 ? lines : ['the files are the same']),
    changed ?? 'memory: one of the two has none, so there is nothing to compare',
  ];
}

export async function diff(from: string, to: string, options: { output?: OutputFormat }): Promise<void> {
  const found = await withClient((client) =>
    withStatus(`comparing ${from} and ${to}`, () => client.snapshots.compare(from, to)),
  );
  if (outputFormat(options.output) === 'json') printJson(found);
  else process.stdout.write(`${diffLines(found).join('\n')}\n`);
}
