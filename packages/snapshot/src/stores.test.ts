import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Launcher } from '@aenv/linux';
import { AenvError } from '@aenv/std';
import fc from 'fast-check';
import {
  blankMemory,
  homeLayout,
  LayerStore,
  type MachineShape,
  parseManifest,
  prepareHome,
  SandboxStore,
  type TemplateManifest,
  TemplateStore,
} from './index.ts';

const MACHINE: MachineShape = {
  driver: 'fake',
  cpus: 1,
  memoryMb: 128,
  kernel: '/k',
  initramfs: '/i',
  kernelArguments: [],
};
const BASE = { path: '/base.raw', format: 'raw', sizeMb: 64, parents: ['/base.raw'] } as const;

/** A launcher that can make disks and seal them, which is all that a store asks for. */
const launcher = {
  run: async ({ args }: { args: string[] }) => {
    await writeFile(args.at(-2) ?? '', args.join(' '));
    return { code: 0, signal: null, stdout: '', stderr: '' };
  },
  seal: () => Promise.resolve(),
} as unknown as Launcher;

async function withHome(work: (home: ReturnType<typeof homeLayout>) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'aenv-snapshot-'));
  try {
    const home = homeLayout(root);
    await prepareHome(home);
    await work(home);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

describe('manifests', () => {
  test('no text makes the parser throw anything but an error that names the place', () => {
    const texts = fc.oneof(
      fc.string(),
      fc.json(),
      fc.record({ kind: fc.constantFrom('template', 'pause', 'x'), version: fc.nat(3) }).map((v) => JSON.stringify(v)),
    );
    fc.assert(
      fc.property(texts, (text) => {
        try {
          const { kind, version } = parseManifest(text, '/some/where');
          assert.ok(['template', 'pause'].includes(kind) && version === 2);
        } catch (error) {
          assert.ok(error instanceof AenvError, String(error));
          assert.match(error.message, /\/some\/where/);
        }
      }),
    );
  });
});

describe('templates', () => {
  test('a build is visible only when it is published, and complete then', () =>
    withHome(async (home) => {
      const store = new TemplateStore(home, launcher);
      const staged = await store.stage('b1', { ...BASE, parents: [...BASE.parents] });
      await assert.rejects(store.manifest('b1'), { code: 'template_not_found' });
      for (const path of [staged.memory, staged.state]) await writeFile(path, 'x');
      await store.publish('b1', { ...BASE, parents: [...BASE.parents] }, MACHINE, 7);
      const manifest: TemplateManifest = await store.manifest('b1');
      assert.deepEqual(manifest.machine, MACHINE);
      assert.deepEqual(manifest.disk.parents, ['/base.raw']);
      // The empty layer looks for its base where that lies after the rename.
      assert.match(await readFile(store.files('b1').emptyLayer, 'utf8'), new RegExp(`-b ${store.files('b1').disk} `));
      assert.deepEqual(await readdir(home.templates), ['b1']);
    }));

  test('a snapshot is pages over the memory of a build, and a layer', () =>
    withHome(async (home) => {
      const store = new TemplateStore(home, launcher);
      const layers = new LayerStore(home, launcher);
      const staged = await store.stageSnapshot('b2');
      for (const path of [staged.memoryDiff, staged.state]) await writeFile(path, 'x');
      const disk = { path: layers.path('l1'), sizeMb: 64, parents: ['/base.raw'] };
      await store.publishSnapshot('b2', { createdAt: 7, machine: MACHINE, disk }, '/memory');
      const manifest = await store.manifest('b2');
      assert.deepEqual(manifest.memory, { base: '/memory', diff: store.files('b2').memoryDiff });
      assert.deepEqual(await store.guestState('b2'), { memory: manifest.memory, state: store.files('b2').state });
      await layers.clone('l2', store.files('b2').emptyLayer);
      assert.match(await readFile(layers.path('l2'), 'utf8'), new RegExp(`-b ${layers.path('l1')} `));
      assert.deepEqual(await layers.removeUnowned(new Set(['l1'])), ['l2.qcow2']);
    }));

  test('what no build owns is removed, staging included', () =>
    withHome(async (home) => {
      const store = new TemplateStore(home, launcher);
      await store.stage('b1', { ...BASE, parents: [] });
      await store.stage('b2', { ...BASE, parents: [] });
      assert.equal((await store.removeUnowned(new Set(['b1']))).length, 2);
      assert.deepEqual(await readdir(home.templates), []);
    }));
});

describe('pauses', () => {
  async function paused(store: SandboxStore): Promise<void> {
    await store.create('s1');
    const staged = await store.stagePause('s1');
    await writeFile(staged.state, 'state');
    await writeFile(staged.memoryDiff, 'diff');
    await store.publishPause('s1', 1, { base: '/memory', pages: 1 });
  }

  test('one that is staged does not count, and one that is published does', () =>
    withHome(async (home) => {
      const store = new SandboxStore(home);
      await store.create('s1');
      await store.stagePause('s1');
      assert.equal(await store.paused('s1'), undefined);
      await rm(store.directory('s1'), { recursive: true });
      await paused(store);
      const { state, memoryDiff } = store.saved('s1');
      assert.deepEqual(await store.paused('s1'), { guest: { memory: { base: '/memory', diff: memoryDiff }, state } });
      await store.discardPause('s1');
      assert.equal(await store.paused('s1'), undefined);
    }));

  test('one whose files did not reach the disk does not count', () =>
    withHome(async (home) => {
      const store = new SandboxStore(home);
      await paused(store);
      await truncate(store.saved('s1').memoryDiff, 2);
      assert.equal(await store.paused('s1'), undefined);
      await rm(store.saved('s1').memoryDiff);
      assert.equal(await store.paused('s1'), undefined);
    }));

  test('the memory can be forgotten in one step, or not be kept at all', () =>
    withHome(async (home) => {
      const store = new SandboxStore(home);
      await paused(store);
      await store.forgetMemory('s1');
      assert.deepEqual(await store.paused('s1'), {});
      assert.deepEqual(await readdir(store.saved('s1').directory), ['manifest.json']);
      await store.discardPause('s1');
      await store.forgetMemory('s1');
      assert.equal(await store.paused('s1'), undefined);
      await store.stagePause('s1');
      await store.publishPause('s1', 1);
      assert.deepEqual(await store.paused('s1'), {});
    }));

  test('there is one blank memory for each size', () =>
    withHome(async (home) => {
      const paths = await Promise.all([64, 128, 64].map((size) => blankMemory(home, size)));
      assert.equal(paths[0], paths[2]);
      const { size, mode, blocks } = await stat(paths[1] as string);
      assert.deepEqual({ size, mode: mode & 0o777, blocks }, { size: 128 << 20, mode: 0o444, blocks: 0 });
      assert.deepEqual((await readdir(home.blankMemory)).sort(), ['128', '64']);
    }));

  test('a damaged manifest is an error, never a missing one', () =>
    withHome(async (home) => {
      const store = new SandboxStore(home);
      await paused(store);
      await writeFile(join(store.saved('s1').directory, 'manifest.json'), '{"version": 9, "kind": "pause"}');
      await assert.rejects(store.paused('s1'), /version 9/);
    }));
});
