import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/std';
import fc from 'fast-check';
import { encode, LineSplitter, parseMessage, parseRequest } from './wire.ts';

test('lines come out the same, however their bytes are cut', () => {
  const text = fc.string({ unit: 'binary' }).map((line) => line.replaceAll('\n', ' ').toWellFormed());
  fc.assert(
    fc.property(fc.array(text), fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), (lines, sizes) => {
      const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
      const splitter = new LineSplitter();
      const found: string[] = [];
      for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
        const size = sizes[turn % sizes.length] ?? 1;
        found.push(...splitter.push(bytes.subarray(at, at + size)));
        at += size;
      }
      assert.deepEqual(found, lines);
      assert.equal(splitter.take(), '');
    }),
  );
});

test('a line over the limit is refused before it is complete', () => {
  const splitter = new LineSplitter(10);
  assert.deepEqual(splitter.push(Buffer.from('0123456789\n01234')), ['0123456789']);
  assert.throws(() => splitter.push(Buffer.from('567890')), { code: 'payload_too_large' });
});

test('what is encoded is parsed', () => {
  const request = { id: 7, method: 'seal', params: { path: 'ä\n\u2028' } };
  assert.deepEqual(parseRequest(encode(request).slice(0, -1)), request);
  const exit = { id: 'a', pid: 1, code: null, signal: 'SIGKILL', oom: true };
  const error = { code: 'conflict' as const, message: 'm' };
  for (const message of [
    { event: 'vmExit' as const, exit },
    { id: 1, result: [] },
    { id: 2, error },
    { id: 3, line: '' },
  ]) {
    assert.deepEqual(parseMessage(encode(message).slice(0, -1)), message);
  }
});

test('anything else is refused with an error of ours', () => {
  for (const line of [
    '',
    '[]',
    'null',
    '1',
    '{}',
    '{"id":0,"method":"a"}',
    '{"id":"1","method":"a"}',
    '{"id":1}',
    '{"id":1.5}',
  ]) {
    assert.throws(() => parseRequest(line), { code: 'bad_request' }, line);
  }
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (line) => {
      for (const parse of [parseRequest, parseMessage]) {
        try {
          parse(line);
        } catch (error) {
          assert.ok(error instanceof AenvError);
        }
      }
    }),
  );
});
