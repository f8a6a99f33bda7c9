/** Every step of the life of a sandbox fails once, and the server dies once before and after each of them. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { homeLayout } from '@aenv/snapshot';
import { AenvError } from '@aenv/std';
import type { Orchestrator } from './orchestrator.ts';
import { Connection } from './testing/fake-host.ts';
import { buildBase, Harness, SETTINGS } from './testing/harness.ts';

interface Progress {
  /** Set once the sandbox has been promised to somebody. */
  id?: string;
  /** What its memory holds. */
  value?: number;
  /** Set before it is asked to go. */
  killing?: boolean;
}

const MEMORY = 41;

/** create → write to its memory → copy it in all ways → pause → resume → kill, and how far it came. */
async function life(harness: Harness, orchestrator: Orchestrator, progress: Progress): Promise<void> {
  const { id } = await orchestrator.createSandbox({ ...SETTINGS, template: 'base' });
  progress.id = id;
  for (const vm of harness.host.vms.values()) vm.value = MEMORY;
  progress.value = MEMORY;
  const snapshot = await orchestrator.createSnapshot(id);
  const copies = await orchestrator.forkSandbox(id, { count: 1, timeoutSeconds: 300 });
  for (const copy of copies) if ('error' in copy) throw copy.error;
  await orchestrator.rollbackSandbox(id, snapshot.id, false);
  await orchestrator.pauseSandbox(id);
  await orchestrator.resumeSandbox(id, 300);
  progress.killing = true;
  await orchestrator.killSandbox(id);
}

/** How many calls on the host a whole life takes after the start of the server. */
async function countCalls(): Promise<{ first: number; last: number }> {
  await using harness = await Harness.create();
  await buildBase(await harness.start());
  const connection = new Connection(harness.host);
  const orchestrator = await harness.start(connection);
  const first = connection.calls + 1;
  await life(harness, orchestrator, {});
  await orchestrator.close();
  return { first, last: connection.calls };
}

/** The sandbox is there with its memory, or it may be gone; either way it can be deleted and then nothing is left. */
async function assertSound(harness: Harness, orchestrator: Orchestrator, { id, value, killing }: Progress) {
  const present = orchestrator.listSandboxes({}).map((view) => view.id);
  if (id !== undefined && !killing) assert.ok(present.includes(id), 'a promised sandbox is lost');
  const copies = orchestrator.listSnapshots({}).map((snapshot) => snapshot.id);
  for (const copy of copies) {
    // Whatever became of its source, a snapshot that is ready starts, and has what was in memory.
    const { id: started } = await orchestrator.createSandbox({ ...SETTINGS, template: copy });
    assert.equal(memoryOf(harness, started), MEMORY, 'the snapshot holds another memory');
    await orchestrator.killSandbox(started);
  }
  for (const view of orchestrator.listSandboxes({})) {
    const { sandbox } = await orchestrator.connectSandbox(view.id, 300);
    assert.equal(sandbox.state, 'running');
    if (value !== undefined) assert.equal(memoryOf(harness, view.id), value, 'the memory is not what it was');
    copies.push((await orchestrator.createSnapshot(view.id)).id);
    assert.deepEqual(harness.unsealedLayers(), [], 'layers that no copy could be started from');
    await orchestrator.killSandbox(view.id);
  }
  // An end that failed is hidden, and succeeds when it is asked for again.
  if (killing && id !== undefined) await orchestrator.killSandbox(id).catch(() => {});
  for (const copy of copies) await orchestrator.deleteTemplate(copy);
  const { layers } = homeLayout(harness.root);
  assert.deepEqual(await readdir(layers), [], 'disk layers are left');
  await harness.assertNothingLeft();
}

const memoryOf = (harness: Harness, id: string) =>
  [...harness.host.vms.values()].find(({ record }) => record.id.startsWith(`${id}-`))?.value;

describe('faults', async () => {
  const { first, last } = await countCalls();
  assert.ok(last - first > 10);
  for (let at = first; at <= last; at += 1) {
    test(`call ${at - first + 1} of ${last - first + 1} on the host fails`, async () => {
      await using harness = await Harness.create();
      await buildBase(await harness.start());
      const orchestrator = await harness.start(new Connection(harness.host, { at, how: 'fail' }));
      const progress: Progress = {};
      await life(harness, orchestrator, progress).catch((error: unknown) => {
        assert.ok(error instanceof AenvError, `not a typed error: ${error}`);
      });
      await assertSound(harness, orchestrator, progress);
      await orchestrator.close();
      assert.deepEqual([...harness.host.slots.keys()].length <= 1, true, 'slots are left');
    });

    for (const how of ['die_before', 'die_after'] as const) {
      test(`the server dies (${how}) at call ${at - first + 1}`, async () => {
        await using harness = await Harness.create();
        await buildBase(await harness.start());
        const connection = new Connection(harness.host, { at, how });
        const progress: Progress = {};
        const orchestrator = await harness.start(connection);
        await Promise.race([life(harness, orchestrator, progress), connection.died]);
        const next = await harness.start();
        await assertSound(harness, next, progress);
        await next.close();
        assert.deepEqual([...harness.host.slots.keys()], [], 'slots are left');
      });
    }
  }
});
