import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from './logging.ts';

function capture(level = 'debug') {
  const lines: string[] = [];
  const logger = createLogger(level, { write: (line: string) => void lines.push(line) });
  return { logger, last: () => JSON.parse(lines.at(-1) ?? '{}') as Record<string, unknown>, lines };
}

test('a line is one JSON object with time, level, message, fields and what the child was bound to', () => {
  const { logger, last } = capture();
  logger.child({ sandboxId: 'i1' }).warn({ port: 80 }, 'port closed');
  const { time, ...rest } = last();
  assert.deepEqual(rest, { level: 'warn', sandboxId: 'i1', port: 80, msg: 'port closed' });
  assert.ok(Math.abs(Date.parse(String(time)) - Date.now()) < 60_000);
});

test('secrets do not get into the log, wherever they stand', () => {
  const { logger, lines } = capture();
  const secret = 'e2b_0123456789abcdef';
  logger.info({ apiKey: secret, sandbox: { envdAccessToken: secret, envVars: { A: secret } } }, 'created');
  logger.info({ req: { headers: { 'x-api-key': secret, 'x-access-token': secret, authorization: secret } } }, 'asked');
  logger.info({ credentials: { username: 'u', password: secret }, initKey: secret }, 'pulled');
  logger.info({ headers: { 'x-api-key': secret, cookie: secret } }, 'asked');
  assert.equal(lines.length, 4);
  for (const line of lines) {
    assert.ok(!line.includes(secret), line);
    assert.ok(line.includes('[secret]'), line);
  }
});

test('an error is logged with its causes, and a level that is off writes nothing', () => {
  const { logger, lines, last } = capture('warn');
  logger.info({}, 'not this');
  assert.equal(lines.length, 0);
  logger.error({ error: new Error('outer', { cause: new Error('inner') }) }, 'failed');
  const { error } = last() as { error: { message: string; cause: { message: string } } };
  assert.equal(error.message, 'outer');
  assert.equal(error.cause.message, 'inner');
});
