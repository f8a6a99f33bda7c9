/** Start, resume and pause, up to the first output of a command. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { homeLayout, SandboxStore } from '@aenv/snapshot';
import { sleep } from '@aenv/std';
import type { Bench } from './environment.ts';
import { type FloorStart, FloorVm, firstOutput, greetAndRun } from './floor.ts';
import { alternate, median, type Result, timed } from './statistics.ts';

const SAMPLES = 15;
/** Bytes that the guest dirties before a pause; its own processes dirty some more. */
const DIRTY_MB = 4;
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

export async function pause(bench: Bench): Promise<Result[]> {
  const { server } = bench.world;
  const store = new SandboxStore(homeLayout(server.home));
  const samples: number[] = [];
  let changedMb = 0;
  for (let round = 0; round <= SAMPLES; round += 1) {
    const sandbox = await bench.create();
    const dirty = await runShell(bench, sandbox, `head -c ${DIRTY_MB}M /dev/urandom > /dev/shm/dirty`);
    if (dirty !== 0) throw new Error(`the guest could not dirty its memory: exit code ${dirty}`);
    const { ms, value } = await timed(() => server.call('POST', `/sandboxes/${sandbox.id}/pause`));
    if (value.status !== 204) throw new Error(`pause: ${JSON.stringify(value)}`);
    const manifest = await store.pauseManifest(sandbox.id);
    changedMb = (manifest?.sizes.memoryDiff ?? 0) / 2 ** 20;
    if (round > 0) samples.push(ms);
    await bench.kill(sandbox);
  }
  return [
    {
      name: `pause, ${changedMb.toFixed(1)} MiB of 256 MiB changed`,
      value: median(samples),
      unit: 'ms',
      goal: { of: 'value', limit: 50, kind: 'at most' },
    },
  ];
}

async function runShell(bench: Bench, sandbox: { id: string; token: string }, script: string): Promise<number> {
  await using guest = bench.guestOf(sandbox);
  const started = await guest.processes.start({ cmd: '/bin/sh', args: ['-c', script] });
  return (await started.exit).exitCode;
}
