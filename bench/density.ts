/** Fifty sandboxes alive at once: what they cost, and what the server costs. */
import { processesWith } from '../tests/e2e/support/server.ts';
import { type Bench, type BenchSandbox, procField } from './environment.ts';
import { firstOutput } from './floor.ts';
import type { Result } from './statistics.ts';

const COUNT = 50;

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
    const pids = processesWith(`${server.home}/vm/`).map((line) => Number(line.split(' ')[0]));
    if (pids.length !== COUNT) throw new Error(`${pids.length} VMs run instead of ${COUNT}`);
    let kib = 0;
    for (const pid of pids) kib += await procField(pid, 'smaps_rollup', 'Pss');
    return [
      {
        name: `host memory of each of ${COUNT} sandboxes (PSS, one command run)`,
        value: kib / COUNT / 1024,
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
