import assert from 'node:assert/strict';
import { access, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as tick } from 'node:timers/promises';
import { homeLayout } from '@aenv/snapshot';
import { AenvError } from '@aenv/std';
import fc from 'fast-check';
import type { Orchestrator } from './orchestrator.ts';
import { buildBase, Harness, SETTINGS } from './testing/harness.ts';

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

const STEPS = ['cold', 'cold', 'snapshot', 'delete', 'kill', 'gc', 'gc'] as const;
type Step = { name: (typeof STEPS)[number]; which: number; ticks: number };

const steps = fc.array(
  fc.record({ name: fc.constantFrom(...STEPS), which: fc.nat(2), ticks: fc.nat(12) }) as fc.Arbitrary<Step>,
  { minLength: 2, maxLength: 30 },
);

/** Refused because somebody needs it, or because it has just gone. */
const REFUSALS = ['conflict', 'template_in_use', 'template_not_found', 'sandbox_not_found'];

class Users {
  readonly #orchestrator: Orchestrator;

  constructor(orchestrator: Orchestrator) {
    this.#orchestrator = orchestrator;
  }

  async perform({ name, which }: Step): Promise<void> {
    const engine = this.#orchestrator;
    try {
      if (name === 'cold') {
        const { id } = await engine.createCold({ ...SETTINGS, image: `image${which}` });
        assert.equal(engine.getSandbox(id).state, 'running');
      } else if (name === 'gc') await engine.collectGarbage(false);
      else if (name === 'delete') {
        const names = [...engine.listTemplates(), ...engine.listSnapshots({})].map(({ id }) => id);
        await engine.deleteTemplate(names[which % Math.max(1, names.length)] ?? 'none');
      } else {
        const { id = 'inone' } = engine.listSandboxes({})[which] ?? {};
        if (name === 'kill') await engine.killSandbox(id);
        else await engine.createSnapshot(id);
      }
    } catch (error) {
      assert.ok(error instanceof AenvError && REFUSALS.includes(error.code), `${name}: ${error}`);
    }
  }
}

/** Every file that a published build names is there. */
async function assertWhole(root: string): Promise<void> {
  const { templates } = homeLayout(root);
  for (const build of (await readdir(templates)).filter((name) => !name.startsWith('.'))) {
    const { disk } = JSON.parse(await readFile(join(templates, build, 'manifest.json'), 'utf8'));
    for (const path of [disk.path, ...disk.parents]) await access(path);
  }
}

test('beside everything else that goes on, nothing is taken that a template or sandbox needs', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (list) => {
      await using harness = await Harness.create();
      harness.host.imageDisk = undefined;
      const orchestrator = await harness.start();
      const users = new Users(orchestrator);
      const pending: Promise<void>[] = [];
      for (const step of list) {
        pending.push(users.perform(step));
        for (let turn = 0; turn < step.ticks; turn += 1) await tick();
      }
      await Promise.all(pending);
      await assertWhole(harness.root);
      for (const { id } of orchestrator.listSandboxes({})) await orchestrator.killSandbox(id);
      for (const { id } of [...orchestrator.listSnapshots({}), ...orchestrator.listTemplates()])
        await orchestrator.deleteTemplate(id);
      await orchestrator.collectGarbage(false);
      await orchestrator.close();
      await harness.assertNothingLeft();
      assert.deepEqual(await readdir(homeLayout(harness.root).imageDisks).catch(() => []), []);
    }),
    { numRuns: 60 },
  );
});
