import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { sleep } from '@aenv/std';
import type { Orchestrator } from './orchestrator.ts';
import { buildBase, Harness, SETTINGS, until } from './testing/harness.ts';

/** What the guest of the sandbox has in its memory; 0 after a boot. */
function memoryOf(harness: Harness, id: string): number | undefined {
  return [...harness.host.vms.values()].find(({ record }) => record.id.startsWith(`${id}-`))?.value;
}

async function withSandbox(
  work: (harness: Harness, orchestrator: Orchestrator, id: string) => Promise<void>,
): Promise<void> {
  await using harness = await Harness.create();
  const orchestrator = await harness.start();
  await buildBase(orchestrator);
  const { id } = await orchestrator.createSandbox({ ...SETTINGS, template: 'base' });
  for (const vm of harness.host.vms.values()) vm.value = 7;
  await work(harness, orchestrator, id);
  await orchestrator.close();
}

test('a snapshot without memory has no memory, and what starts from it boots and can be paused', () =>
  withSandbox(async (harness, orchestrator, id) => {
    const snapshot = await orchestrator.createSnapshot(id, { name: 'files', memory: false });
    assert.equal(snapshot.memory, false);
    const [view] = orchestrator.listSnapshots({ name: 'files' });
    assert.deepEqual(view, snapshot);
    assert.equal(memoryOf(harness, id), 7, 'the source goes on');
    const { id: booted } = await orchestrator.createSandbox({ ...SETTINGS, template: 'files' });
    assert.equal(memoryOf(harness, booted), 0);
    for (const vm of harness.host.vms.values()) vm.value = 9;
    await orchestrator.pauseSandbox(booted);
    await orchestrator.connectSandbox(booted, 300);
    assert.equal(memoryOf(harness, booted), 9);
    const [child] = await orchestrator.forkSandbox(booted, { count: 1, timeoutSeconds: 60 });
    assert.ok(child && 'sandbox' in child, 'it cannot be forked');
    assert.equal(memoryOf(harness, child.sandbox.id), 9);
    await orchestrator.rollbackSandbox(booted, 'files', false);
    assert.equal(memoryOf(harness, booted), 0);
  }));

test('a sandbox that is paused without memory boots when it goes on, and after a restart of the server too', () =>
  withSandbox(async (harness, orchestrator, id) => {
    await orchestrator.pauseSandbox(id, { memory: false });
    assert.deepEqual(await readdir(join(harness.root, 'sandboxes', id, 'pause')), ['manifest.json']);
    const next = await harness.start();
    assert.equal(next.getSandbox(id).state, 'paused');
    await next.resumeSandbox(id, 300);
    assert.equal(memoryOf(harness, id), 0);
    await next.close();
  }));

test('a paused sandbox can be booted instead of resumed; a running one is left alone', () =>
  withSandbox(async (harness, orchestrator, id) => {
    await orchestrator.connectSandbox(id, 300, { memory: false });
    assert.equal(memoryOf(harness, id), 7);
    await orchestrator.pauseSandbox(id);
    await orchestrator.connectSandbox(id, 300, { memory: false });
    assert.equal(memoryOf(harness, id), 0);
  }));

test('a pause on timeout keeps the memory or not, as was asked', async () => {
  await using harness = await Harness.create();
  const orchestrator = await harness.start();
  await buildBase(orchestrator);
  const settings = { ...SETTINGS, template: 'base', onTimeout: 'pause', timeoutSeconds: 5 } as const;
  const [whole, disk] = await Promise.all(
    [true, false].map((pauseMemory) => orchestrator.createSandbox({ ...settings, pauseMemory })),
  );
  for (const vm of harness.host.vms.values()) vm.value = 7;
  harness.clock.advance(5000);
  await sleep(300);
  await until(() => orchestrator.listSandboxes({ states: ['paused'] }).length === 2);
  for (const { id } of orchestrator.listSandboxes({})) await orchestrator.connectSandbox(id, 300);
  assert.equal(memoryOf(harness, whole?.id ?? ''), 7);
  assert.equal(memoryOf(harness, disk?.id ?? ''), 0);
  await orchestrator.close();
});
