/** Start, resume and pause, up to the first output of a command. */
import { randomBytes } from 'node:crypto';
import { readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { homeLayout, SandboxStore } from '@aenv/snapshot';
import { sleep } from '@aenv/std';
import { type Bench, dirty } from './environment.ts';
import { type FloorStart, FloorVm, firstOutput, greetAndRun } from './floor.ts';
import { alternate, median, type Result, timed } from './statistics.ts';

const SAMPLES = 15;
/** MB that the guest changes before a pause; its own processes change some more. */
const DIRTY_MB = 4;
const FURTHER_MB = 100;
const ROUNDS = 20;
/** A pause is answered before its VM has ended; this many milliseconds later that no longer disturbs a measurement. */
const VM_END_MS = 200;

async function floorStart(bench: Bench, token: string, files: FloorStart): Promise<number> {
  const { ms, value: vm } = await timed(async () => {
    const started = await FloorVm.start(bench.machine, bench.slot, bench.world.server.home, files);
    await greetAndRun(bench.slot, bench.initKey, token);
    return started;
  });
  await vm.kill();
  return ms;
}

export async function createToOutput(bench: Bench): Promise<Result[]> {
  const { emptyLayer, state } = bench.template;
  const measured = async () => {
    const { ms, value: sandbox } = await timed(async () => {
      const created = await bench.create();
      await using guest = bench.guestOf(created);
      await firstOutput(guest);
      return created;
    });
    await bench.kill(sandbox);
    return ms;
  };
  const figures = await alternate(SAMPLES, measured, () => floorStart(bench, 'token', { disk: emptyLayer, state }));
  return [
    {
      name: 'create → first command output',
      ...figures,
      unit: 'ms',
      goal: { of: 'ratio', limit: 1.25, kind: 'at most' },
    },
  ];
}

export async function resumeToOutput(bench: Bench): Promise<Result[]> {
  const { server } = bench.world;
  const sandbox = await bench.create();
  const store = new SandboxStore(homeLayout(server.home));
  await server.call('POST', `/sandboxes/${sandbox.id}/pause`);
  const measured = async () => {
    const { ms } = await timed(async () => {
      await server.call('POST', `/v2/sandboxes/${sandbox.id}/connect`, { timeout: 3600 });
      await using guest = bench.guestOf(sandbox);
      await firstOutput(guest);
    });
    await server.call('POST', `/sandboxes/${sandbox.id}/pause`);
    await sleep(VM_END_MS);
    return ms;
  };
  const [layer = ''] = await readdir(homeLayout(server.home).layers);
  const floor = () => {
    const { state, memoryDiff } = store.saved(sandbox.id);
    return floorStart(bench, sandbox.token, { disk: join(homeLayout(server.home).layers, layer), state, memoryDiff });
  };
  const figures = await alternate(SAMPLES, measured, floor);
  await bench.kill(sandbox);
  return [
    {
      name: 'resume → first command output',
      ...figures,
      unit: 'ms',
      goal: { of: 'ratio', limit: 1.25, kind: 'at most' },
    },
  ];
}

/** Milliseconds that the pause of a new sandbox takes which has changed `mb` of its memory, and how much was saved, MiB. */
async function pauseAfter(bench: Bench, mb: number): Promise<{ ms: number; savedMb: number }> {
  const { server } = bench.world;
  const sandbox = await bench.create();
  await dirty(bench, sandbox, mb);
  const { ms, value } = await timed(() => server.call('POST', `/sandboxes/${sandbox.id}/pause`));
  if (value.status !== 204) throw new Error(`pause: ${JSON.stringify(value)}`);
  const { size } = await stat(new SandboxStore(homeLayout(server.home)).saved(sandbox.id).memoryDiff);
  await bench.kill(sandbox);
  return { ms, savedMb: size / 2 ** 20 };
}

/** The floor of what a larger diff costs: writing so many bytes to a new file, once they are in memory. */
async function floorWrite(bench: Bench, data: Buffer): Promise<number> {
  const path = join(bench.world.server.home, 'floor-write');
  const { ms } = await timed(() => writeFile(path, data));
  await rm(path);
  return ms;
}

export async function pause(bench: Bench): Promise<Result[]> {
  const samples = { small: [] as number[], large: [] as number[], floor: [] as number[] };
  const data = randomBytes(FURTHER_MB << 20);
  let [small, large] = [0, 0];
  for (let round = 0; round <= SAMPLES; round += 1) {
    const little = await pauseAfter(bench, DIRTY_MB);
    const much = await pauseAfter(bench, DIRTY_MB + FURTHER_MB);
    const floor = await floorWrite(bench, data);
    [small, large] = [little.savedMb, much.savedMb];
    // The first of each warms up.
    if (round === 0) continue;
    samples.small.push(little.ms);
    samples.large.push(much.ms);
    samples.floor.push(floor);
  }
  const further = (median(samples.large) - median(samples.small)) / ((large - small) / 100);
  return [
    {
      name: `pause, ${small.toFixed(1)} MiB of 256 MiB changed`,
      value: median(samples.small),
      unit: 'ms',
      goal: { of: 'value', limit: 30, kind: 'at most' },
    },
    {
      name: 'pause, each further 100 MiB changed (floor: writing them to a file)',
      value: further,
      floor: median(samples.floor),
      unit: 'ms',
      goal: { of: 'value', limit: 40, kind: 'at most' },
    },
  ];
}

/** One sandbox that is paused and resumed again and again, with the same work in between. */
export async function rounds(bench: Bench): Promise<Result[]> {
  const { server } = bench.world;
  const sandbox = await bench.create();
  const samples: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    await dirty(bench, sandbox, DIRTY_MB);
    const { ms } = await timed(async () => {
      await server.call('POST', `/sandboxes/${sandbox.id}/pause`);
      await server.call('POST', `/v2/sandboxes/${sandbox.id}/connect`, { timeout: 3600 });
      await using guest = bench.guestOf(sandbox);
      await firstOutput(guest);
    });
    samples.push(ms);
  }
  await bench.kill(sandbox);
  return [
    {
      name: `${ROUNDS} rounds of pause and resume: the last three (floor: the first three)`,
      value: median(samples.slice(-3)),
      floor: median(samples.slice(0, 3)),
      unit: 'ms',
      goal: { of: 'ratio', limit: 1.3, kind: 'at most' },
    },
  ];
}
