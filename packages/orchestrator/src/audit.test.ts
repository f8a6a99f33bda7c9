import assert from 'node:assert/strict';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { homeLayout } from '@aenv/snapshot';
import { buildBase, Harness, SETTINGS, until } from './testing/harness.ts';

test('a server at work is clean, and what nobody owns is found, and removed when asked for', async () => {
  await using harness = await Harness.create();
  const orchestrator = await harness.start();
  await buildBase(orchestrator);
  const { id } = await orchestrator.createSandbox({ ...SETTINGS, template: 'base' });
  await orchestrator.createSnapshot(id);
  assert.deepEqual(await orchestrator.audit(false), []);

  const { layers, sandboxes, vms, templates } = homeLayout(harness.root);
  await writeFile(join(layers, 'l0.qcow2'), '');
  for (const directory of [join(sandboxes, 'i0'), join(vms, 'i0-abcd'), join(templates, '.staging-x')]) {
    await mkdir(directory);
  }
  const slot = harness.host.addSlot();
  const vm = harness.host.addVm(
    { id: 'i0-abcd', slot, resources: { cpus: 1, memoryMb: 1 }, directory: '', memoryFile: '', diskFile: '' } as never,
    0,
  );
  const idle = harness.host.addSlot();
  const expected = [
    `layer l0`,
    'run_directory i0-abcd',
    'sandbox_files i0',
    `slot ${idle.namespace}`,
    'template_files .staging-x',
    `vm ${vm.record.id}`,
  ];
  const found = await orchestrator.audit(false);
  assert.deepEqual(found.map(({ kind, name }) => `${kind} ${name}`).sort(), expected);
  assert.ok(found.every(({ removed }) => removed === false));
  const repaired = await orchestrator.audit(true);
  assert.ok(repaired.every(({ removed }) => removed === true));
  // The slot of the VM has become one without a VM.
  await orchestrator.audit(true);
  assert.deepEqual(await orchestrator.audit(false), []);
  assert.equal(orchestrator.getSandbox(id).state, 'running');
  assert.deepEqual([...harness.host.vms.keys()].length, 1);
  await orchestrator.close();
});

test('the machine of a build in progress is no stray', async () => {
  await using harness = await Harness.create();
  harness.readyTimeoutSeconds = 60;
  const orchestrator = await harness.start();
  const { id, build } = orchestrator.createTemplate({ name: 'slow', tags: [] });
  harness.host.exitCodes.set('not yet', 1);
  orchestrator.startBuild(id, build.id, { fromImage: 'debian', readyCmd: 'not yet' });
  await until(() => harness.host.vms.size === 1);
  assert.deepEqual(await orchestrator.audit(true), []);
  assert.equal(orchestrator.getBuild(id, build.id).status, 'building');
  harness.host.exitCodes.set('not yet', 0);
  await orchestrator.close();
});

test('what a record needs and is gone is said, and left alone', async () => {
  await using harness = await Harness.create();
  const orchestrator = await harness.start();
  await buildBase(orchestrator);
  const { id } = await orchestrator.createSandbox({ ...SETTINGS, template: 'base' });
  await orchestrator.pauseSandbox(id);
  const { layers, sandboxes } = homeLayout(harness.root);
  for (const name of await readdir(layers)) await rm(join(layers, name));
  await rm(join(sandboxes, id, 'pause'), { recursive: true });
  const kinds = (await orchestrator.audit(true)).map(({ kind, removed }) => `${kind} ${removed}`);
  assert.deepEqual(kinds.sort(), ['missing_layer false', 'missing_state false']);
  await orchestrator.close();
});
