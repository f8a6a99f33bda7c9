/** `aenv tree`: who came from whom. */
import type { LineageNode } from '@aenv/client';
import { type OutputFormat, outputFormat, printable, printJson, relativeTime } from '../output.ts';
import { withClient } from '../session.ts';

function label({ kind, name, state, createdAt, uniqueMB }: LineageNode): string {
  return `${kind} ${printable(name)}  ${state}, ${relativeTime(Date.parse(createdAt))}, ${uniqueMB} MiB of its own`;
}

/** One line for each node, drawn like tree(1); the nodes come parents first. */
export function drawTree(nodes: readonly LineageNode[]): string[] {
  const known = new Set(nodes.map(({ id }) => id));
  const childrenOf = (id: string) => nodes.filter(({ parentID }) => parentID === id);
  const draw = (node: LineageNode, indent: string): string[] => {
    const children = childrenOf(node.id);
    return children.flatMap((child, at) => {
      const isLast = at === children.length - 1;
      const line = `${indent}${isLast ? '└── ' : '├── '}${label(child)}`;
      return [line, ...draw(child, `${indent}${isLast ? '    ' : '│   '}`)];
    });
  };
  const roots = nodes.filter(({ parentID }) => parentID === undefined || !known.has(parentID));
  return roots.flatMap((root) => [label(root), ...draw(root, '')]);
}

export async function tree(id: string, options: { output?: OutputFormat }): Promise<void> {
  const nodes = await withClient((client) => client.snapshots.lineage(id));
  if (outputFormat(options.output) === 'json') printJson(nodes);
  else process.stdout.write(`${drawTree(nodes).join('\n')}\n`);
}
