import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pollUntil } from '@aenv/std';
import type { Orchestrator } from './orchestrator.ts';
import { Connection } from './testing/fake-host.ts';
import { buildBase, Harness, SETTINGS } from './testing/harness.ts';

const SIZE = 2;
/** More than the pool waits after a claim. */
const QUIET = 1000;

/** A server with a pool, and a first sandbox, which brings the template into use. */
async function pooled(harness: Harness, connection?: Connection) {
  const orchestrator = await harness.start(connection, 0, SIZE);
  await buildBase(orchestrator);
  const { id } = await orchestrator.createSandbox({ ...SETTINGS, template: 'base' });
  return { orchestrator, first: id };
}

async function ready(harness: Harness, orchestrator: Orchestrator, count: number): Promise<void> {
  harness.clock.advance(QUIET);
  await pollUntil(`${count} waiting VMs`, () => (orchestrator.stats().pool.ready === count ? true : undefined), {
    intervalMs: 10,
    timeoutMs: 5000,
  });
}

const vmOf = (harness: Harness, id: string) =>
  [...harness.host.vms.values()].find(({ record }) => record.id.startsWith(`${id}-`));

describe('the pool of waiting VMs', () => {
  test('a start takes a waiting VM, which stood still until then, and it is replaced', async () => {
    await using harness = await Harness.create();
    const { orchestrator, first } = await pooled(harness);
    await ready(harness, orchestrator, SIZE);
    const waiting = [...harness.host.vms.values()].filter(({ running }) => !running);
    assert.equal(waiting.length, SIZE);
    const { id } = await orchestrator.createSandbox({ ...SETTINGS, template: 'base', secure: true });
    assert.ok(waiting.includes(vmOf(harness, id) as never));
    assert.equal(vmOf(harness, id)?.running, true);
    assert.deepEqual(orchestrator.stats().pool, { ready: SIZE - 1, hits: 1, misses: 1 });
    await ready(harness, orchestrator, SIZE);
    // It can do all that any other sandbox can.
    await orchestrator.pauseSandbox(id);
    await orchestrator.resumeSandbox(id, 60);
    await orchestrator.createSnapshot(id);
    for (const sandbox of [first, id]) await orchestrator.killSandbox(sandbox);
    await orchestrator.close();
    await harness.assertNothingLeft();
    assert.equal(harness.host.slots.size, 0);
  });

  test('none waits for a template out of use, for one that is deleted, or when the host needs its memory', async () => {
    await using harness = await Harness.create();
    const { orchestrator, first } = await pooled(harness);
    await orchestrator.killSandbox(first);
    await ready(harness, orchestrator, SIZE);
    harness.freeMemoryMb = 512;
    await ready(harness, orchestrator, 0);
    harness.freeMemoryMb = 16_384;
    await ready(harness, orchestrator, SIZE);
    harness.clock.advance(120_000);
    await ready(harness, orchestrator, 0);
    const { id } = await orchestrator.createSandbox({ ...SETTINGS, template: 'base' });
    await ready(harness, orchestrator, SIZE);
    await orchestrator.killSandbox(id);
    await orchestrator.deleteTemplate('base');
    assert.equal(orchestrator.stats().pool.ready, 0);
    await harness.assertNothingLeft();
    assert.deepEqual(await readdir(join(harness.root, 'layers')), []);
    await orchestrator.close();
  });

  test('a waiting VM that dies is replaced, and one that does not obey costs only time', async () => {
    await using harness = await Harness.create();
    const { orchestrator } = await pooled(harness);
    await ready(harness, orchestrator, SIZE);
    const [waiting] = [...harness.host.vms.values()].filter(({ running }) => !running);
    harness.host.endVm(waiting?.record.id ?? '', 'vmm_crash');
    await pollUntil('the loss', () => (orchestrator.stats().pool.ready < SIZE ? true : undefined), {
      intervalMs: 1,
      timeoutMs: 1000,
    });
    await ready(harness, orchestrator, SIZE);
    await orchestrator.close();
  });

  test('every call of a start from the pool may fail: it starts in another way, or nothing is left', async () => {
    await using counting = await Harness.create();
    const counter = new Connection(counting.host);
    const { orchestrator: counted } = await pooled(counting, counter);
    await ready(counting, counted, SIZE);
    const before = counter.calls;
    await counted.createSandbox({ ...SETTINGS, template: 'base', allowInternetAccess: false });
    const calls = counter.calls - before;
    await counted.close();
    assert.ok(calls >= 3);
    for (let at = before + 1; at <= before + calls; at += 1) {
      await using harness = await Harness.create();
      const { orchestrator } = await pooled(harness, new Connection(harness.host, { at, how: 'fail' }));
      await ready(harness, orchestrator, SIZE);
      const { id } = await orchestrator.createSandbox({
        ...SETTINGS,
        template: 'base',
        allowInternetAccess: false,
      });
      assert.equal(vmOf(harness, id)?.running, true, `call ${at} of ${before + calls}`);
      for (const view of orchestrator.listSandboxes({})) await orchestrator.killSandbox(view.id);
      await orchestrator.close();
      await harness.assertNothingLeft();
    }
  });

  test('a server that dies leaves waiting VMs, and the next one removes them', async () => {
    await using harness = await Harness.create();
    const { orchestrator, first } = await pooled(harness);
    await ready(harness, orchestrator, SIZE);
    const next = await harness.start();
    assert.deepEqual(
      [...harness.host.vms.values()].map(({ record }) => record.id.split('-')[0]),
      [first],
    );
    assert.equal((await readdir(join(harness.root, 'layers'))).length, 1);
    await next.killSandbox(first);
    await harness.assertNothingLeft();
    await next.close();
  });
});
