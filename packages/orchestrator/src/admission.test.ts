import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Orchestrator } from './orchestrator.ts';
import { buildBase, Harness, SETTINGS } from './testing/harness.ts';

const REQUEST = { ...SETTINGS, template: 'base' };

async function withBase(
  change: (harness: Harness) => void,
  work: (orchestrator: Orchestrator, harness: Harness) => Promise<void>,
): Promise<void> {
  await using harness = await Harness.create();
  change(harness);
  const orchestrator = await harness.start();
  await buildBase(orchestrator);
  await work(orchestrator, harness);
  await orchestrator.close();
}

describe('a start that does not fit', () => {
  test('is refused with the figure that is in the way', () =>
    withBase(
      (harness) => {
        harness.maxRunning = 1;
      },
      async (orchestrator, harness) => {
        const { id } = await orchestrator.createSandbox(REQUEST);
        await assert.rejects(orchestrator.createSandbox(REQUEST), /1 sandboxes are running, .* maximum/);
        await orchestrator.pauseSandbox(id);
        harness.freeMemoryMb = 100;
        await assert.rejects(orchestrator.createSandbox(REQUEST), /only 100 MiB of the machine's memory are free/);
        await assert.rejects(orchestrator.resumeSandbox(id, 60), { code: 'capacity_exhausted' });
        assert.equal(orchestrator.getSandbox(id).state, 'paused');
        harness.freeMemoryMb = 10_000;
        harness.freeDiskMb = 1;
        await assert.rejects(orchestrator.createSandbox(REQUEST), /only 1 MiB of the disk/);
        harness.freeDiskMb = 10_000;
        await orchestrator.resumeSandbox(id, 60);
      },
    ));

  test('is refused when more memory would be promised than the overcommit allows', () =>
    withBase(
      (harness) => {
        harness.totalMemoryMb = 60;
      },
      async (orchestrator) => {
        // 600 MiB may be promised, 256 to each.
        await orchestrator.createSandbox(REQUEST);
        await orchestrator.createSandbox(REQUEST);
        await assert.rejects(orchestrator.createSandbox(REQUEST), /512 MiB of memory are promised to 2 .* exceed 600/);
        assert.deepEqual(orchestrator.node().memoryMb.promised, 512);
      },
    ));

  test('waits for its turn, in order, and never more of them run than may', () =>
    withBase(
      (harness) => {
        harness.maxRunning = 2;
        harness.queueSeconds = 30;
      },
      async (orchestrator) => {
        const order: number[] = [];
        const starts = Array.from({ length: 8 }, async (_, at) => {
          const { id } = await orchestrator.createSandbox(REQUEST);
          order.push(at);
          assert.ok(orchestrator.node().running <= 2, `${orchestrator.node().running} run`);
          await orchestrator.killSandbox(id);
        });
        assert.equal(orchestrator.node().waiting, 6);
        await Promise.all(starts);
        assert.deepEqual(
          order.toSorted((one, other) => one - other),
          [0, 1, 2, 3, 4, 5, 6, 7],
        );
        assert.equal(orchestrator.node().waiting, 0);
      },
    ));

  test('is refused after its time, and then does not run', () =>
    withBase(
      (harness) => {
        harness.maxRunning = 1;
        harness.queueSeconds = 0.05;
      },
      async (orchestrator) => {
        const { id } = await orchestrator.createSandbox(REQUEST);
        await assert.rejects(orchestrator.createSandbox(REQUEST), /waited 0.05 s for room/);
        await orchestrator.killSandbox(id);
        assert.equal(orchestrator.node().waiting, 0);
        assert.equal(orchestrator.stats().running, 0);
      },
    ));
});
