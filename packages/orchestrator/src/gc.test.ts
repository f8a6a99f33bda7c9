import assert from 'node:assert/strict';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { homeLayout } from '@aenv/snapshot';
import { buildBase, Harness } from './testing/harness.ts';

test('image disks that no template stands on go, those in use stay, and nothing does during a build', async () => {
  await using harness = await Harness.create();
  const { imageDisks } = homeLayout(harness.root);
  await mkdir(imageDisks, { recursive: true });
  const orchestrator = await harness.start();
  harness.host.imageDisk = join(imageDisks, 'used.raw');
  await buildBase(orchestrator);
  for (const name of ['used.raw', 'unused.raw']) await writeFile(join(imageDisks, name), 'x'.repeat(5000));
  const names = async (dryRun: boolean) => (await orchestrator.collectGarbage(dryRun)).map(({ name }) => name);
  assert.deepEqual(await names(true), ['unused.raw']);
  assert.deepEqual((await readdir(imageDisks)).sort(), ['unused.raw', 'used.raw']);

  const { id, build } = orchestrator.createTemplate({ name: 'other', tags: [] });
  orchestrator.startBuild(id, build.id, { fromImage: 'debian' });
  await assert.rejects(orchestrator.collectGarbage(false), { code: 'conflict' });
  while (orchestrator.getBuild(id, build.id).status === 'building') await new Promise((done) => setImmediate(done));

  assert.deepEqual(await names(false), ['unused.raw']);
  assert.deepEqual(await readdir(imageDisks), ['used.raw']);
  await orchestrator.deleteTemplate('base');
  await orchestrator.deleteTemplate('other');
  assert.deepEqual(await names(false), ['used.raw']);
  await orchestrator.close();
});
