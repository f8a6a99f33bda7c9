import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/std';
import { runTool } from './tool.ts';

async function* chunks(count: number, bytes: number): AsyncGenerator<Uint8Array> {
  for (let index = 0; index < count; index += 1) yield Buffer.alloc(bytes, 'x');
}

test('the stream arrives whole, and the output and exit code come back', async () => {
  const result = await runTool('sh', ['-c', 'wc -c; echo oops >&2; exit 3'], { stdin: chunks(100, 100_000) });
  assert.deepEqual(result, { code: 3, stdout: '10000000\n', stderr: 'oops\n' });
});

test('without a stream the input is empty, and the environment is ours', async () => {
  const { stdout } = await runTool('sh', ['-c', 'cat; echo "$A $LANG $HOME"'], { env: { A: 'b' } });
  assert.equal(stdout, 'b C.UTF-8 \n');
});

test('only the end of a long output is kept', async () => {
  const { stdout } = await runTool('sh', ['-c', 'yes | head -c 1000000; echo end']);
  assert.equal(stdout.length, 65_536);
  assert.ok(stdout.endsWith('end\n'));
});

test('a program that does not read its input ends the stream', async () => {
  let closed = false;
  const endless = (async function* () {
    try {
      for (;;) yield Buffer.alloc(1 << 20);
    } finally {
      closed = true;
    }
  })();
  assert.equal((await runTool('sh', ['-c', 'exit 5'], { stdin: endless })).code, 5);
  assert.ok(closed);
});

test('a stream that fails kills the program, which never sees a clean end', async () => {
  const broken = (async function* () {
    yield Buffer.from('half');
    throw new AenvError('image_invalid', 'broken');
  })();
  const started = performance.now();
  await assert.rejects(runTool('sleep', ['30'], { stdin: broken }), /broken/);
  assert.ok(performance.now() - started < 5000);
});

test('aborting ends the program and rejects with the reason', async () => {
  const stop = new AbortController();
  const reason = new Error('enough');
  setTimeout(() => stop.abort(reason), 50);
  const started = performance.now();
  await assert.rejects(runTool('sleep', ['30'], { signal: stop.signal }), reason);
  await assert.rejects(runTool('sleep', ['30'], { signal: stop.signal }), reason);
  assert.ok(performance.now() - started < 5000);
});

test('a program that is not there', async () => {
  await assert.rejects(
    runTool('no-such-program', []),
    (error: unknown) => error instanceof AenvError && error.code === 'host_missing_tool' && !!error.remedy,
  );
});
