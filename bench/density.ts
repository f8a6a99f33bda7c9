/** Many sandboxes alive at once: what they cost, and what the server costs. */
import { totalmem } from 'node:os';
import { processesWith } from '../tests/e2e/support/server.ts';
import { type Bench, type BenchSandbox, forkOf, procField } from './environment.ts';
import { firstOutput } from './floor.ts';
import type { Result } from './statistics.ts';

const COUNT = 50;
const MANY = 200;
const FORKS_AT_ONCE = 50;
/** How many of them have to run a command. */
const SAMPLES = 20;
/** MiB of each sandbox, as bench/environment.ts builds its template. */
const MEMORY_MB = 256;

/** MiB that `count` VMs of the server hold together; what they share is counted once. */
async function heldMb(bench: Bench, count: number): Promise<number> {
  const pids = processesWith(`${bench.world.server.home}/vm/`).map((line) => Number(line.split(' ')[0]));
  if (pids.length !== count) throw new Error(`${pids.length} VMs run instead of ${count}`);
  let kib = 0;
  for (const pid of pids) kib += await procField(pid, 'smaps_rollup', 'Pss');
  return kib / 1024;
}

export async function density(bench: Bench): Promise<Result[]> {
  const { server } = bench.world;
  const sandboxes: BenchSandbox[] = [];
  try {
    for (let made = 0; made < COUNT; made += 1) {
      const sandbox = await bench.create();
      sandboxes.push(sandbox);
      await using guest = bench.guestOf(sandbox);
      await firstOutput(guest);
    }
    return [
      {
        name: `host memory of each of ${COUNT} sandboxes (PSS, one command run)`,
        value: (await heldMb(bench, COUNT)) / COUNT,
        unit: 'MiB',
        goal: { of: 'value', limit: 80, kind: 'at most' },
      },
      {
        name: `memory of the server with ${COUNT} sandboxes`,
        value: (await procField(server.pid, 'status', 'VmRSS')) / 1024,
        unit: 'MiB',
        goal: { of: 'value', limit: 200, kind: 'at most' },
      },
    ];
  } finally {
    for (const sandbox of sandboxes) await bench.kill(sandbox);
  }
}

/** As many forks as were promised more memory than the machine has. */
export async function overcommit(bench: Bench): Promise<Result[]> {
  const parent = await bench.create();
  const sandboxes: BenchSandbox[] = [];
  try {
    while (sandboxes.length < MANY) sandboxes.push(...(await forkOf(bench, parent, FORKS_AT_ONCE)).children);
    for (const sandbox of sandboxes.slice(-SAMPLES)) {
      await using guest = bench.guestOf(sandbox);
      await firstOutput(guest);
    }
    const count = MANY + 1;
    const held = await heldMb(bench, count);
    return [
      {
        name: `memory promised to ${count} sandboxes ÷ the machine's`,
        value: (count * MEMORY_MB * 2 ** 20) / totalmem(),
        unit: '×',
      },
      { name: `memory promised to ${count} sandboxes ÷ what they hold`, value: (count * MEMORY_MB) / held, unit: '×' },
      { name: `host memory of each of ${count} idle forks (PSS)`, value: held / count, unit: 'MiB' },
    ];
  } finally {
    for (const sandbox of [...sandboxes, parent]) await bench.kill(sandbox);
  }
}
