/** Starts that find a waiting VM. A server of their own: in the other measurements none waits. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createWorld } from '../tests/e2e/support/world.ts';
import { type Bench, openBench } from './environment.ts';
import { firstOutput } from './floor.ts';
import { median, type Result, timed } from './statistics.ts';

const SIZE = 6;
const ROUNDS = 4;
/** Until a VM that was just made ready no longer uses the processor, milliseconds. */
const SETTLE_MS = 1000;

async function untilFull({ world }: Bench): Promise<void> {
  for (;;) {
    const { body } = await world.server.call('GET', '/stats');
    if ((body as { pool: { ready: number } }).pool.ready === SIZE) return sleep(SETTLE_MS);
    await sleep(100);
  }
}

export async function claim(): Promise<Result[]> {
  const world = await createWorld({ AENV_LOG_LEVEL: 'warn', AENV_POOL_SIZE: String(SIZE) });
  const [running, output]: [number[], number[]] = [[], []];
  try {
    await using bench = await openBench(world);
    for (let round = 0; round < ROUNDS; round += 1) {
      await untilFull(bench);
      // Before the pool begins to make new ones, which takes a processor.
      for (let index = 0; index < SIZE / 2; index += 1) {
        const started = performance.now();
        const { ms, value: sandbox } = await timed(() => bench.create());
        await using guest = bench.guestOf(sandbox);
        await firstOutput(guest);
        if (round > 0) {
          running.push(ms);
          output.push(performance.now() - started);
        }
        await bench.kill(sandbox);
      }
    }
  } finally {
    await world.destroy();
  }
  return [
    {
      name: 'create from the pool → running',
      value: median(running),
      unit: 'ms',
      goal: { of: 'value', limit: 50, kind: 'at most' },
    },
    {
      name: 'create from the pool → first command output',
      value: median(output),
      unit: 'ms',
      goal: { of: 'value', limit: 100, kind: 'at most' },
    },
  ];
}
