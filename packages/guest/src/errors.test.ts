import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError, ERROR_CODES } from '@aenv/std';
import { Code, ConnectError } from '@connectrpc/connect';
import fc from 'fast-check';
import { errorFromCall, errorFromResponse } from './errors.ts';

test('the body of the API keeps code, message and remedy', () => {
  const body = {
    code: 404,
    message: 'sandbox x does not exist',
    error_code: 'sandbox_not_found',
    remedy: 'List them.',
  };
  const error = errorFromResponse(404, JSON.stringify(body));
  assert.deepEqual(error.toJSON(), {
    code: 'sandbox_not_found',
    message: 'sandbox x does not exist',
    remedy: 'List them.',
  });
});

test('the body of a Connect call is understood', () => {
  const error = errorFromResponse(404, '{"code":"not_found","message":"process with pid 7 not found"}');
  assert.equal(error.code, 'not_found');
  assert.equal(error.message, 'process with pid 7 not found');
});

test('a full disk and an unknown cause fall back to the status', () => {
  assert.equal(errorFromResponse(507, '{"code":507,"message":"no space"}').code, 'disk_full');
  assert.equal(errorFromResponse(404, '{"code":404,"message":"m","error_code":"from_the_future"}').code, 'not_found');
  assert.equal(errorFromResponse(500, '{"code":500,"message":"m"}').code, 'internal');
});

test('whatever the body is, the result is an error of the table that has a message', () => {
  fc.assert(
    fc.property(fc.integer({ min: 300, max: 599 }), fc.oneof(fc.string(), fc.json()), (status, body) => {
      const error = errorFromResponse(status, body);
      assert.ok(Object.hasOwn(ERROR_CODES, error.code));
      assert.equal(typeof error.message, 'string');
    }),
  );
});

test('Connect codes map to ours; what travelled inside one comes out again', () => {
  assert.equal(errorFromCall(new ConnectError('no', Code.Unauthenticated)).code, 'unauthorized');
  assert.equal(errorFromCall(new ConnectError('late', Code.DeadlineExceeded)).code, 'timeout');
  const inner = new AenvError('port_closed', 'nothing listens');
  assert.equal(errorFromCall(ConnectError.from(inner)), inner);
});

test('a lost connection names the system’s reason', () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:1'), { code: 'ECONNREFUSED' });
  const error = errorFromCall(ConnectError.from(new TypeError('fetch failed', { cause: refused })));
  assert.equal(error.code, 'guest_unreachable');
  assert.match(error.message, /ECONNREFUSED/);
});
