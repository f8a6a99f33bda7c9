import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, fromBinary, fromJson, toBinary, toJson } from '@bufbuild/protobuf';
import { filesystem, process } from './envd.ts';

test('numbers of fields and enums are those of the wire', () => {
  const request = create(process.SendSignalRequestSchema, {
    process: { selector: { case: 'pid', value: 1 } },
    signal: process.Signal.SIGKILL,
  });
  // Field 1 (a message: field 1, varint 1), field 2 (varint 9).
  const bytes = Uint8Array.of(0x0a, 0x02, 0x08, 0x01, 0x10, 0x09);
  assert.deepEqual(toBinary(process.SendSignalRequestSchema, request), bytes);
  assert.deepEqual(fromBinary(process.SendSignalRequestSchema, bytes), request);
});

test('the JSON that an SDK sends to start a command is understood', () => {
  const request = fromJson(process.StartRequestSchema, {
    process: { cmd: '/bin/bash', args: ['-l', '-c', 'id'], envs: { A: '1' }, cwd: '/tmp' },
    pty: { size: { cols: 80, rows: 24 } },
    tag: 't',
    stdin: false,
  });
  assert.deepEqual(request.process?.args, ['-l', '-c', 'id']);
  assert.equal(request.process?.cwd, '/tmp');
  assert.equal(request.pty?.size?.cols, 80);
});

test('output is bytes, base64 in JSON', () => {
  const response = create(process.StartResponseSchema, {
    event: { event: { case: 'data', value: { output: { case: 'stdout', value: Uint8Array.of(0, 255) } } } },
  });
  assert.deepEqual(toJson(process.StartResponseSchema, response), { event: { data: { stdout: 'AP8=' } } });
});

test('types of files have the names that SDKs compare with', () => {
  const entry = create(filesystem.EntryInfoSchema, { name: 'a', type: filesystem.FileType.DIRECTORY });
  assert.deepEqual(toJson(filesystem.EntryInfoSchema, entry), { name: 'a', type: 'FILE_TYPE_DIRECTORY' });
});
