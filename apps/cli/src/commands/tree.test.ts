import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LineageNode } from '@aenv/client';
import { drawTree } from './tree.ts';

const node = (id: string, kind: LineageNode['kind'], parentID?: string): LineageNode => ({
  id,
  kind,
  name: id,
  state: 'ready',
  createdAt: new Date().toISOString(),
  uniqueMB: 1,
  ...(parentID === undefined ? {} : { parentID }),
});

test('children hang below their parents', () => {
  const drawn = drawTree([
    node('base', 'template'),
    node('a', 'sandbox', 'base'),
    node('s', 'snapshot', 'a'),
    node('b', 'sandbox', 's'),
    node('f', 'sandbox', 'a'),
  ]);
  assert.deepEqual(
    drawn.map((line) => line.replace(/ {2}ready.*/, '')),
    ['template base', '└── sandbox a', '    ├── snapshot s', '    │   └── sandbox b', '    └── sandbox f'],
  );
});
