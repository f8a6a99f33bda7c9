/** Snapshots, forks and rollbacks: how long the source stands still, and what a copy costs. */
import { homeLayout, SandboxStore } from '@aenv/snapshot';
import { type Bench, type BenchSandbox, dirty, forkOf, privateMemory } from './environment.ts';
import { FloorVm, greet } from './floor.ts';
import { median, type Result, timed } from './statistics.ts';

const SAMPLES = 10;
/** MB that the guest changes before it is copied; its own processes change some more. */
const DIRTY_MB = 4;
const CHILDREN = 16;
const SCALE = [1, 4, 64];

/** Milliseconds that the sandbox stood still for its last copy, as its log has them. */
async function stoodStill(bench: Bench, { id }: BenchSandbox): Promise<number> {
  const { body } = await bench.world.server.call('GET', `/v2/sandboxes/${id}/logs?direction=backward`);
  const { logs } = body as { logs: { message: string; fields: Record<string, string> }[] };
  return Number(logs.find(({ message }) => message === 'captured')?.fields.stoodStillMs);
}

export async function snapshot(bench: Bench): Promise<Result[]> {
  const { server } = bench.world;
  const [still, whole]: [number[], number[]] = [[], []];
  for (let round = 0; round <= SAMPLES; round += 1) {
    const sandbox = await bench.create();
    await dirty(bench, sandbox, DIRTY_MB);
    const { ms, value } = await timed(() => server.call('POST', `/sandboxes/${sandbox.id}/snapshots`, {}));
    if (value.status !== 201) throw new Error(`snapshot: ${JSON.stringify(value)}`);
    if (round > 0) {
      still.push(await stoodStill(bench, sandbox));
      whole.push(ms);
    }
    await bench.kill(sandbox);
  }
  return [
    {
      name: 'snapshot in place: the sandbox stands still',
      value: median(still),
      unit: 'ms',
      goal: { of: 'value', limit: 15, kind: 'at most' },
    },
    { name: 'snapshot in place: until it is ready', value: median(whole), unit: 'ms' },
  ];
}

/** The floor of a fork's child: bare QEMU from the same state until its guest has been told who it is. */
async function floorRestore(bench: Bench, parent: BenchSandbox): Promise<number> {
  const { server } = bench.world;
  const store = new SandboxStore(homeLayout(server.home));
  await server.call('POST', `/sandboxes/${parent.id}/pause`);
  const { state, memoryDiff } = store.saved(parent.id);
  const samples: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const { ms, value: vm } = await timed(async () => {
      const started = await FloorVm.start(bench.machine, bench.slot, server.home, {
        disk: bench.template.emptyLayer,
        state,
        memoryDiff,
      });
      await greet(bench.slot, bench.initKey, parent.token);
      return started;
    });
    await vm.kill();
    samples.push(ms);
  }
  await server.call('POST', `/v2/sandboxes/${parent.id}/connect`, { timeout: 3600 });
  return median(samples);
}

export async function fork(bench: Bench): Promise<Result[]> {
  const { home } = bench.world.server;
  const parent = await bench.create();
  await dirty(bench, parent, DIRTY_MB);
  const floor = await floorRestore(bench, parent);
  const results: Result[] = [];
  for (const count of [CHILDREN, ...SCALE]) {
    const { ms, children } = await forkOf(bench, parent, count);
    if (count === CHILDREN) {
      results.push(
        {
          name: `fork of ${count} (floor: ${count} restores, one after another)`,
          value: ms,
          floor: count * floor,
          unit: 'ms',
          goal: { of: 'ratio', limit: 1, kind: 'at most' },
        },
        {
          name: 'fork: the parent stands still',
          value: await stoodStill(bench, parent),
          unit: 'ms',
          goal: { of: 'value', limit: 20, kind: 'at most' },
        },
      );
      const kib = await Promise.all(children.map(({ id }) => privateMemory(home, id)));
      results.push({ name: 'private memory of an idle fork', value: median(kib) / 1024, unit: 'MiB' });
    } else {
      results.push({ name: `fork of ${count}`, value: ms, unit: 'ms' });
    }
    for (const child of children) await bench.kill(child);
  }
  await bench.kill(parent);
  return results;
}
