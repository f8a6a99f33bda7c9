import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { AenvError, sleep } from '@aenv/std';
import type { Vm } from './driver.ts';
import { createFakeDriver, FakeMachine } from './fake.ts';
import { type VmmHarness, vmmContract } from './testing/contract.ts';

async function harness(): Promise<VmmHarness & { machine: FakeMachine }> {
  const directory = await mkdtemp(join(tmpdir(), 'aenv-fake-'));
  const machine = new FakeMachine();
  const seen = new Map<string, number[]>();
  return {
    machine,
    driver: createFakeDriver(machine),
    directory,
    bootRequest: async (id) => {
      const diskFile = join(directory, `${id}.disk`);
      await writeFile(diskFile, '');
      return {
        id,
        slot: { index: 1, namespace: 'aenv-1', tap: 'tap0', hostAddress: '10.11.0.6', uid: 2_000_001 },
        resources: { cpus: 1, memoryMb: 128 },
        directory,
        memoryFile: join(directory, `${id}.memory`),
        diskFile,
        kernel: '/kernel',
        initramfs: '/initramfs',
        kernelArguments: [],
        memory: 'shared',
      };
    },
    layer: async (id) => {
      const path = join(directory, `${id}.disk`);
      await writeFile(path, '');
      return path;
    },
    blank: (path) => writeFile(path, '[]'),
    seal: async () => {},
    // A fake guest counts when it is looked at.
    counts: async ({ record: { id } }) => {
      const memory = machine.isRunning(id) ? machine.memory(id) : undefined;
      const numbers = seen.get(id) ?? [];
      if (memory) {
        const next = Number(memory.get('counter') ?? 0) + 1;
        memory.set('counter', String(next));
        numbers.push(next);
        seen.set(id, numbers);
      }
      return numbers;
    },
    crash: async (vm) => machine.end(vm.record.id, 'vmm_crash'),
    restart: async () => createFakeDriver(machine),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}

vmmContract('fake', harness);

async function booted(run: (machine: FakeMachine, vm: Vm) => Promise<void>): Promise<void> {
  await using given = await harness();
  const vm = await given.driver.boot(await given.bootRequest('vm'));
  await vm.resume();
  await run(given.machine, vm);
}

test('an injected failure hits one call and has no effect', () =>
  booted(async (machine, vm) => {
    machine.failNext('stop', new AenvError('timeout', 'too slow'));
    await assert.rejects(vm.stop(), { code: 'timeout' });
    assert.equal(machine.isRunning('vm'), true);
    await vm.stop();
    assert.equal(machine.isRunning('vm'), false);
  }));

test('a held operation waits until it is let go', () =>
  booted(async (machine, vm) => {
    const release = machine.hold('kill');
    let done = false;
    const killed = vm.kill(0).then(() => {
      done = true;
    });
    await sleep(10);
    assert.equal(done, false);
    assert.deepEqual(machine.ids, ['vm']);
    release();
    await killed;
    assert.deepEqual(machine.ids, []);
  }));

test('a guest may end by itself', () =>
  booted(async (machine, vm) => {
    machine.end('vm', 'guest_panic', 'Kernel panic');
    assert.deepEqual(await vm.ended, { cause: 'guest_panic', detail: 'Kernel panic' });
  }));
