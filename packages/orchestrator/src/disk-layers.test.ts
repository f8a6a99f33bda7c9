import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { firstToMerge, MANY_LAYERS } from './disk-layers.ts';
import { buildBase, Harness, SETTINGS, until } from './testing/harness.ts';

test('however a disk grows, it consists of few layers, and its bytes are copied a few times at most', () => {
  const sizes = fc.array(fc.oneof(fc.integer({ min: 0, max: 10 }), fc.integer({ min: 0, max: 1_000_000 })), {
    minLength: 1,
    maxLength: 600,
  });
  fc.assert(
    fc.property(sizes, (added) => {
      let layers: number[] = [];
      let [total, copied] = [0, 0];
      for (const size of added) {
        layers.push(size);
        total += size;
        if (layers.length <= MANY_LAYERS) continue;
        const first = firstToMerge(layers);
        const sum = layers.slice(first).reduce((one, other) => one + other, 0);
        layers = [...layers.slice(0, first), sum];
        copied += sum;
        assert.ok(layers.length <= MANY_LAYERS, `${layers.length} layers`);
      }
      assert.equal(
        layers.reduce((one, other) => one + other, 0),
        total,
      );
      assert.ok(copied <= 20 * total, `${copied} bytes copied of ${total}`);
    }),
  );
});

/** Takes so many snapshots that layers are merged. */
async function grown(harness: Harness) {
  const orchestrator = await harness.start();
  await buildBase(orchestrator);
  const { id } = await orchestrator.createSandbox({ ...SETTINGS, template: 'base' });
  for (let n = 0; n < MANY_LAYERS; n += 1) await orchestrator.createSnapshot(id, { name: `s${n}` });
  return { orchestrator, id };
}

const layersIn = async (harness: Harness) => (await readdir(join(harness.root, 'layers'))).length;

test('layers are merged after a copy; those that snapshots need stay until these are gone', async () => {
  await using harness = await Harness.create();
  const { orchestrator, id } = await grown(harness);
  await until(() => harness.layersOf(id).length < MANY_LAYERS);
  assert.equal(await layersIn(harness), MANY_LAYERS + 1);
  const last = `s${MANY_LAYERS - 1}`;
  const { id: copy } = await orchestrator.createSandbox({ ...SETTINGS, template: last });
  assert.equal(harness.layersOf(copy).length, MANY_LAYERS + 1);
  await orchestrator.createSnapshot(id, { name: 'after' });
  const { id: after } = await orchestrator.createSandbox({ ...SETTINGS, template: 'after' });
  assert.equal(harness.layersOf(after).length, harness.layersOf(id).length);
  for (const sandbox of [copy, after]) await orchestrator.killSandbox(sandbox);
  for (const { id: snapshot } of orchestrator.listSnapshots({})) await orchestrator.deleteTemplate(snapshot);
  assert.equal(await layersIn(harness), harness.layersOf(id).length);
  await orchestrator.close();
});

test('a merge that fails or does not end keeps nobody from pausing, copying or killing the sandbox', async () => {
  await using harness = await Harness.create();
  const { orchestrator, id } = await grown(harness);
  await until(() => harness.layersOf(id).length < MANY_LAYERS);
  const settled = harness.layersOf(id).length;
  harness.host.merging = 'hang';
  for (let n = settled; n <= MANY_LAYERS; n += 1) await orchestrator.createSnapshot(id);
  assert.equal(harness.layersOf(id).length, MANY_LAYERS + 1);
  await orchestrator.createSnapshot(id);
  await orchestrator.pauseSandbox(id);
  await orchestrator.connectSandbox(id, 300);
  harness.host.merging = 'fail';
  await orchestrator.createSnapshot(id);
  await until(() => harness.host.merges.failed > 0);
  assert.equal(harness.layersOf(id).length, MANY_LAYERS + 3);
  harness.host.merging = 'work';
  await orchestrator.createSnapshot(id);
  await until(() => harness.layersOf(id).length < MANY_LAYERS);
  harness.host.merging = 'hang';
  for (let n = harness.layersOf(id).length; n <= MANY_LAYERS; n += 1) await orchestrator.createSnapshot(id);
  await orchestrator.killSandbox(id);
  assert.throws(() => orchestrator.getSandbox(id), /killed/);
  await orchestrator.close();
  await harness.assertNothingLeft();
});

test('a server that dies during a merge leaves a disk that the next one goes on with', async () => {
  await using harness = await Harness.create();
  const { orchestrator, id } = await grown(harness);
  await until(() => harness.layersOf(id).length < MANY_LAYERS);
  harness.host.merging = 'hang';
  for (let n = harness.layersOf(id).length; n <= MANY_LAYERS; n += 1) await orchestrator.createSnapshot(id);
  harness.host.merging = 'work';
  const next = await harness.start();
  assert.equal(harness.layersOf(id).length, MANY_LAYERS + 1);
  await next.createSnapshot(id);
  await until(() => harness.layersOf(id).length < MANY_LAYERS);
  await next.pauseSandbox(id);
  await next.connectSandbox(id, 300);
  await next.killSandbox(id);
  await next.close();
});
