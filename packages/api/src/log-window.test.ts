import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LogEntry } from '@aenv/orchestrator';
import { logWindow } from './log-window.ts';

const entries: LogEntry[] = [
  { timestamp: 1, level: 'debug', message: 'one' },
  { timestamp: 2, level: 'info', message: 'two' },
  { timestamp: 2, level: 'warn', message: 'three' },
  { timestamp: 3, level: 'error', message: 'four' },
];
const messages = (window: Parameters<typeof logWindow>[1]) => logWindow(entries, window).map((entry) => entry.message);

test('forward starts at the cursor, backward ends there, both inclusive', () => {
  assert.deepEqual(messages({ limit: 9 }), ['one', 'two', 'three', 'four']);
  assert.deepEqual(messages({ limit: 9, cursor: 2, direction: 'forward' }), ['two', 'three', 'four']);
  assert.deepEqual(messages({ limit: 9, cursor: 2, direction: 'backward' }), ['three', 'two', 'one']);
  assert.deepEqual(messages({ limit: 9, direction: 'backward' }), ['four', 'three', 'two', 'one']);
});

test('the limit counts what passed the filters', () => {
  assert.deepEqual(messages({ limit: 1, level: 'warn' }), ['three']);
  assert.deepEqual(messages({ limit: 2, search: 'o' }), ['one', 'two']);
  assert.deepEqual(messages({ limit: 0 }), []);
});
