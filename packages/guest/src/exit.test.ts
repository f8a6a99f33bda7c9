import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exitOf } from './exit.ts';

test('an exit code is passed on, without the error that only repeats it', () => {
  const end = { exitCode: 3, exited: true, status: 'exit status 3', error: 'exit status 3' };
  assert.deepEqual(exitOf(end), { exitCode: 3, signalled: false, status: 'exit status 3', error: undefined });
});

test('a command that could not be started says why', () => {
  const end = { exitCode: 127, exited: true, status: 'exit status 127', error: 'nosuch: command not found' };
  assert.equal(exitOf(end).error, 'nosuch: command not found');
  assert.equal(exitOf(end).exitCode, 127);
});

test('signals become 128 + their number, as shells report them', () => {
  const of = (status: string) => exitOf({ exitCode: -1, exited: false, status, error: status }).exitCode;
  assert.equal(of('signal: killed'), 137);
  assert.equal(of('signal: terminated'), 143);
  assert.equal(of('signal: segmentation fault (core dumped)'), 139);
  assert.equal(of('signal: signal 35'), 163);
});

test('an ending without a known signal counts as killed', () => {
  assert.equal(exitOf({ exitCode: -1, exited: false, status: 'lost' }).exitCode, 137);
});
