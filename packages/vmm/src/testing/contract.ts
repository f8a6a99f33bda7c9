/** What every driver promises, as tests. A driver's own test file calls `vmmContract` with a harness. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { access, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { pollUntil, sleep } from '@aenv/std';
import type { BootRequest, RestoreRequest, Vm, VmmDriver } from '../driver.ts';

export interface VmmHarness extends AsyncDisposable {
  readonly driver: VmmDriver;
  /** A directory for saved states. */
  readonly directory: string;
  /** Everything for the boot of a guest that counts: a slot and a disk of its own, a memory file that does not exist yet. */
  bootRequest(id: string): Promise<BootRequest>;
  /** Makes an empty layer over the disk `base`. */
  layer(id: string, base: string): Promise<string>;
  /** Makes an all zero memory file. */
  blank(path: string, memoryMb: number): Promise<void>;
  /** Makes a file unwritable for every VM. */
  seal(path: string): Promise<void>;
  /** The numbers that the guest has counted since this VM was started or restored, in order. */
  counts(vm: Vm): Promise<number[]>;
  /** Ends the VMM as a bug in it would. */
  crash(vm: Vm): Promise<void>;
  /** The driver of a server that was restarted; the former one must not be used any more. */
  restart(): Promise<VmmDriver>;
}

/** A saved state, and how far its guest had counted. */
interface Saved {
  request: Omit<RestoreRequest, 'id' | 'slot' | 'directory' | 'diskFile'>;
  count: number;
}

const WAIT = { intervalMs: 5, timeoutMs: 20_000 };
/** More than a guest counts in the time of any single step here. */
const FAR = 2000;

class Steps {
  readonly harness: VmmHarness;
  constructor(harness: VmmHarness) {
    this.harness = harness;
  }

  last = async (vm: Vm): Promise<number> => (await this.harness.counts(vm)).at(-1) ?? -1;

  async countsOn(vm: Vm): Promise<void> {
    const before = await this.last(vm);
    const further = async () => ((await this.last(vm)) > before + 2 ? true : undefined);
    await pollUntil('counting', further, WAIT);
  }

  async standsStill(vm: Vm): Promise<number> {
    const before = await this.last(vm);
    await sleep(100);
    assert.equal(await this.last(vm), before);
    return before;
  }

  /** The guest goes on where `saved` was, not where the template was. */
  async continues(vm: Vm, saved: number): Promise<void> {
    await this.countsOn(vm);
    const [first = -1] = await this.harness.counts(vm);
    assert.ok(first > saved && first < saved + FAR, `went on with ${first} after ${saved}`);
  }

  async template(id: string): Promise<Saved> {
    const request = await this.harness.bootRequest(id);
    const vm = await this.harness.driver.boot(request);
    await vm.resume();
    await this.countsOn(vm);
    await vm.stop();
    const count = await this.standsStill(vm);
    const stateFile = join(this.harness.directory, `${id}.state`);
    await vm.saveTemplate(stateFile);
    await vm.kill(0);
    await this.harness.seal(request.memoryFile);
    const { resources, memoryFile, kernel, initramfs, kernelArguments } = request;
    return { request: { resources, memoryFile, kernel, initramfs, kernelArguments, stateFile }, count };
  }

  async restore(id: string, saved: Saved, driver = this.harness.driver): Promise<Vm> {
    const { slot, directory, diskFile } = await this.harness.bootRequest(id);
    return driver.restore({ ...saved.request, id, slot, directory, diskFile });
  }

  async pause(vm: Vm, name: string, template: Saved): Promise<Saved> {
    await vm.stop();
    const count = await this.standsStill(vm);
    const stateFile = join(this.harness.directory, `${name}.state`);
    const memoryDiff = join(this.harness.directory, `${name}.diff`);
    const dump = await vm.savePause(stateFile, memoryDiff);
    assert.ok(dump.pages > 0, 'the counter has changed, so a page has');
    return { request: { ...template.request, stateFile, memoryDiff }, count };
  }
}

const digest = async (file: string) =>
  createHash('sha256')
    .update(await readFile(file))
    .digest('hex');
const absent = (file: string) => assert.rejects(access(file), { code: 'ENOENT' });

const CASES: Record<string, (steps: Steps) => Promise<void>> = {
  'a booted VM runs, stands still and runs on; twice is no error': async (steps) => {
    const { driver } = steps.harness;
    const vm = await driver.boot(await steps.harness.bootRequest('boot'));
    assert.equal(vm.record.driver, driver.name);
    assert.deepEqual(await steps.harness.counts(vm), [], 'a booted VM stands still until it is resumed');
    await vm.resume();
    await steps.countsOn(vm);
    await vm.stop();
    await vm.stop();
    await steps.standsStill(vm);
    await vm.resume();
    await vm.resume();
    await steps.countsOn(vm);
    await vm.kill(0);
    assert.equal((await vm.ended).cause, 'requested');
    await vm.kill(0);
    await assert.rejects(vm.stop(), { code: 'vmm_failed' });
  },

  'VMs restored from a template go on from it, apart from each other, and never change it': async (steps) => {
    const template = await steps.template('template');
    const before = await digest(template.request.memoryFile);
    const one = await steps.restore('one', template);
    assert.deepEqual(await steps.harness.counts(one), [], 'a restored VM stands still until it is resumed');
    await one.resume();
    await steps.continues(one, template.count);
    const two = await steps.restore('two', template);
    await two.resume();
    await steps.continues(two, template.count);
    await steps.countsOn(one);
    await Promise.all([one.kill(0), two.kill(0)]);
    assert.equal(await digest(template.request.memoryFile), before);
  },

  'a paused VM goes on where it was, and can be paused again': async (steps) => {
    const template = await steps.template('template');
    let vm = await steps.restore('first', template);
    await vm.resume();
    await steps.countsOn(vm);
    for (const name of ['second', 'third']) {
      const paused = await steps.pause(vm, name, template);
      await vm.kill(0);
      vm = await steps.restore(name, paused);
      await vm.resume();
      await steps.continues(vm, paused.count);
    }
    await vm.kill(0);
  },

  'a VM whose state was saved can run on, and the state stays what it was': async (steps) => {
    const template = await steps.template('template');
    const vm = await steps.restore('source', template);
    await vm.resume();
    await steps.countsOn(vm);
    const checkpoint = await steps.pause(vm, 'checkpoint', template);
    await vm.resume();
    await steps.countsOn(vm);
    await vm.kill(0);
    const back = await steps.restore('back', checkpoint);
    await back.resume();
    await steps.continues(back, checkpoint.count);
    await back.kill(0);
  },

  'a VM that booted with private memory can be paused, and its memory file stays empty': async (steps) => {
    const request = await steps.harness.bootRequest('private');
    await steps.harness.blank(request.memoryFile, request.resources.memoryMb);
    const before = await digest(request.memoryFile);
    const vm = await steps.harness.driver.boot({ ...request, memory: 'private' });
    await vm.resume();
    await steps.countsOn(vm);
    const { resources, memoryFile, kernel, initramfs, kernelArguments } = request;
    const template = { resources, memoryFile, kernel, initramfs, kernelArguments, stateFile: '' };
    const paused = await steps.pause(vm, 'paused', { request: template, count: 0 });
    await vm.kill(0);
    const again = await steps.restore('again', paused);
    await again.resume();
    await steps.continues(again, paused.count);
    await again.kill(0);
    assert.equal(await digest(request.memoryFile), before);
  },

  'layers below the disk can be merged into it, and a VM restored on it later goes on': async (steps) => {
    const template = await steps.template('template');
    const vm = await steps.restore('source', template);
    await vm.resume();
    const files = [vm.record.diskFile];
    for (const id of ['second', 'third']) {
      const layer = await steps.harness.layer(id, files.at(-1) as string);
      await vm.addLayer(layer);
      await vm.stop();
      await vm.sealDisk(layer);
      await vm.resume();
      files.push(layer);
    }
    const [first = '', second = '', third = ''] = files;
    const sealed = await digest(second);
    await assert.rejects(vm.mergeDisk(first, AbortSignal.abort(new Error('given up'))), /given up/);
    await vm.mergeDisk(first, new AbortController().signal);
    assert.equal(vm.record.diskFile, third);
    await steps.countsOn(vm);
    assert.equal(await digest(second), sealed);
    await rm(second);
    await steps.harness.seal(first);
    const paused = await steps.pause(vm, 'merged', template);
    await vm.kill(0);
    const { slot, directory } = await steps.harness.bootRequest('after');
    const after = await steps.harness.driver.restore({
      ...paused.request,
      id: 'after',
      slot,
      directory,
      diskFile: third,
    });
    await after.resume();
    await steps.continues(after, paused.count);
    await after.kill(0);
  },

  'the disk can be sealed while the VM stands still, and the next driver knows the new one': async (steps) => {
    const template = await steps.template('template');
    const vm = await steps.restore('source', template);
    await vm.resume();
    const first = vm.record.diskFile;
    const [unused, layer] = await Promise.all(['unused', 'top'].map((id) => steps.harness.layer(id, first)));
    await vm.addLayer(unused as string);
    await vm.removeLayer(unused as string);
    await vm.addLayer(layer as string);
    await assert.rejects(vm.sealDisk(layer as string), 'its processors run');
    await vm.stop();
    await vm.sealDisk(layer as string);
    await vm.resume();
    assert.equal(vm.record.diskFile, layer);
    const sealed = await digest(first);
    await steps.countsOn(vm);
    const driver = await steps.harness.restart();
    const adopted = await driver.adopt({ ...vm.record, diskFile: first });
    assert.equal(adopted?.record.diskFile, layer);
    assert.equal(await digest(first), sealed);
    await adopted?.kill(0);
  },

  'a state that cannot be saved leaves no file, and the VM runs on': async (steps) => {
    const template = await steps.template('template');
    const vm = await steps.restore('source', template);
    await vm.resume();
    await steps.countsOn(vm);
    const [state, diff] = ['x.state', 'x.diff'].map((name) => join(steps.harness.directory, name)) as [string, string];
    await assert.rejects(vm.savePause(state, diff), { code: 'snapshot_failed' }, 'its processors run');
    await vm.stop();
    await assert.rejects(vm.savePause(join(steps.harness.directory, 'none/x.state'), diff), {
      code: 'snapshot_failed',
    });
    await assert.rejects(vm.saveTemplate(state), /private memory/);
    await absent(state);
    await absent(diff);
    await vm.resume();
    await steps.countsOn(vm);
    await vm.kill(0);
  },

  'a state that is missing or damaged is refused, and nothing of the VM is left': async (steps) => {
    const template = await steps.template('template');
    const { stateFile } = template.request;
    const missing = { ...template, request: { ...template.request, stateFile: `${stateFile}.none` } };
    await assert.rejects(steps.restore('same', missing), { code: 'restore_failed' });
    const state = await readFile(stateFile);
    await truncate(stateFile, 5);
    await assert.rejects(steps.restore('same', template), { code: 'restore_failed' });
    await writeFile(stateFile, state);
    const vm = await steps.restore('same', template);
    await vm.resume();
    await steps.continues(vm, template.count);
    await vm.kill(0);
  },

  'a VMM that dies says so': async (steps) => {
    const vm = await steps.harness.driver.boot(await steps.harness.bootRequest('crash'));
    await vm.resume();
    await steps.countsOn(vm);
    await steps.harness.crash(vm);
    assert.equal((await vm.ended).cause, 'vmm_crash');
    await assert.rejects(vm.resume(), { code: 'vmm_failed' });
    await vm.kill(0);
  },

  'VMs outlive the driver: the next one finds them': async (steps) => {
    const template = await steps.template('template');
    const before = await steps.restore('lasting', template);
    await before.resume();
    await steps.countsOn(before);
    const { record } = before;
    const driver = await steps.harness.restart();
    assert.equal(await driver.adopt({ ...record, startTicks: record.startTicks + 1, pid: record.pid + 1 }), undefined);
    const vm = await driver.adopt(record);
    assert.ok(vm);
    assert.deepEqual(vm.record, record);
    await steps.countsOn(vm);
    const paused = await steps.pause(vm, 'adopted', template);
    await vm.kill(0);
    assert.equal((await vm.ended).cause, 'requested');
    assert.equal(await driver.adopt(record), undefined, 'it is gone');
    const again = await steps.restore('again', paused, driver);
    await again.resume();
    await steps.continues(again, paused.count);
    await again.kill(0);
  },
};

export function vmmContract(name: string, open: (t: TestContext) => Promise<VmmHarness | undefined>): void {
  describe(`the contract of a driver: ${name}`, () => {
    for (const [title, run] of Object.entries(CASES)) {
      test(title, async (t) => {
        const harness = await open(t);
        if (!harness) return;
        try {
          await run(new Steps(harness));
        } finally {
          await harness[Symbol.asyncDispose]();
        }
      });
    }
  });
}
