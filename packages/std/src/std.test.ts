import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  AenvError,
  ERROR_CODES,
  type ErrorCode,
  KeyedMutex,
  newApiKey,
  newSandboxId,
  pollUntil,
  randomBase36,
  SANDBOX_ID_PATTERN,
  Semaphore,
  Singleflight,
  sleep,
  withDeadline,
  writeFileAtomic,
} from './index.ts';

describe('concurrent work', () => {
  test('a semaphore never lets more in than it has room for, and lets everybody in', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.boolean(), { maxLength: 20 }),
        async (limit, work) => {
          const room = new Semaphore(limit);
          let inside = 0;
          const results = await Promise.allSettled(
            work.map((fails) =>
              room.run(async () => {
                inside += 1;
                assert.ok(inside <= limit);
                await sleep(0);
                inside -= 1;
                if (fails) throw new Error('fails');
              }),
            ),
          );
          assert.deepEqual(
            results.map(({ status }) => status === 'rejected'),
            work,
          );
          assert.equal(inside, 0);
        },
      ),
      { numRuns: 30 },
    );
  });

  test('callers of one key share a flight, and the next one starts afresh', async () => {
    const flights = new Singleflight<number>();
    let started = 0;
    const work = async () => {
      started += 1;
      await sleep(1);
      return started;
    };
    assert.deepEqual(await Promise.all([flights.run('a', work), flights.run('a', work)]), [1, 1]);
    assert.equal(await flights.run('a', work), 2);
  });

  test('work of one key runs in order, also after a failure', async () => {
    const mutex = new KeyedMutex();
    const order: number[] = [];
    const first = mutex.run('k', async () => {
      await sleep(5);
      order.push(1);
      throw new Error('fails');
    });
    const second = mutex.run('k', async () => void order.push(2));
    await assert.rejects(first);
    await second;
    assert.deepEqual(order, [1, 2]);
    await sleep(0);
    assert.equal(mutex.isHeld('k'), false);
  });

  test('a deadline names what it was for', async () => {
    await assert.rejects(withDeadline(new Promise(() => {}), 5, 'the answer'), /the answer .* 5 ms/);
    await assert.rejects(
      pollUntil('the end', () => undefined, { intervalMs: 1, timeoutMs: 3 }),
      /the end/,
    );
    await assert.rejects(sleep(1000, AbortSignal.abort(new Error('enough'))), /enough/);
  });
});

describe('errors', () => {
  test('they survive the way over a process border', () => {
    const codes = Object.keys(ERROR_CODES) as ErrorCode[];
    fc.assert(
      fc.property(
        fc.constantFrom(...codes),
        fc.string(),
        fc.option(fc.string(), { nil: undefined }),
        (code, text, remedy) => {
          const error = new AenvError(code, text, remedy === undefined ? {} : { remedy });
          const back = AenvError.fromJSON(JSON.parse(JSON.stringify(error)));
          assert.deepEqual([back.code, back.message, back.remedy, back.status], [code, text, remedy, error.status]);
        },
      ),
    );
  });

  test('a full disk is one, wherever it is noticed', () => {
    const full = Object.assign(new Error('x'), { code: 'ENOSPC' });
    const database = Object.assign(new Error('x'), { code: 'ERR_SQLITE_ERROR', errcode: 13 });
    assert.equal(AenvError.from(full).code, 'disk_full');
    assert.equal(AenvError.from(database).code, 'disk_full');
    assert.equal(AenvError.from('text', 'vmm_failed').code, 'vmm_failed');
  });
});

describe('ids', () => {
  test('they have the shapes that SDKs check', () => {
    for (let i = 0; i < 100; i += 1) {
      assert.match(newSandboxId(), SANDBOX_ID_PATTERN);
      assert.match(newSandboxId(), /^i[a-z0-9]{20}$/);
      assert.match(newApiKey(), /^e2b_[0-9a-f]{40}$/);
    }
    assert.equal(randomBase36(0), '');
  });
});

test('a file is replaced as a whole, with its mode, and nothing else is left', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'aenv-std-'));
  try {
    const path = join(directory, 'file');
    await writeFileAtomic(path, 'one', { mode: 0o600 });
    await writeFileAtomic(path, 'two', { mode: 0o600, durable: false });
    assert.equal(await readFile(path, 'utf8'), 'two');
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    assert.deepEqual(await readdir(directory), ['file']);
    await assert.rejects(writeFileAtomic(join(directory, 'no', 'such'), 'x'));
  } finally {
    await rm(directory, { recursive: true });
  }
});
