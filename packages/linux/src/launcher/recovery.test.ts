import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { pollUntil, sleep } from '@aenv/std';
import type { VmExit } from '../launcher-api.ts';
import { isAlive, sendSignal } from '../processes.ts';
import { commandLine, endProcess, missing, pids, QEMU, World } from '../testing/world.ts';
import { vmDirectory } from './paths.ts';

const skip = missing(QEMU, 'flock');
const SECOND = { intervalMs: 5, timeoutMs: 10_000 };

describe('a launcher that dies', { skip }, () => {
  test('leaves its VMs to the next one, which reports how they end', async () => {
    await using world = await World.make();
    const launcher = await world.ensure();
    const exits: VmExit[] = [];
    launcher.onVmExit((exit) => exits.push(exit));
    const used = await launcher.createSlot({ internet: true });
    const ready = await launcher.createSlot({ internet: true });
    const vm = await launcher.spawnVm(await world.vm('survivor', used.index));
    const pid = world.launcherPid();
    assert.ok(pid);
    await endProcess(pid);
    assert.ok(isAlive(vm), 'the VM goes on without a launcher');

    // The same object, by way of a new process.
    assert.deepEqual(await launcher.listVms(), [vm]);
    assert.deepEqual(await launcher.listSlots(), [used, ready]);
    assert.notEqual(world.launcherPid(), pid);
    const late = await launcher.spawnVm(await world.vm('late', ready.index));
    await launcher.killVm(late.id, 0);
    await launcher.destroySlot(ready.index);
    exits.length = 0;
    await launcher.setPolicy(used.index, { internet: false });
    assert.deepEqual(exits, []);

    sendSignal(vm.pid, 'SIGKILL');
    await pollUntil('the exit event', () => exits[0], SECOND);
    assert.deepEqual(exits, [{ id: 'survivor', pid: vm.pid, code: null, signal: null, oom: false }]);
    await launcher.destroySlot(used.index);
    assert.deepEqual(await readdir(vmDirectory(world.home)), []);
  });

  test('between two steps leaves a namespace that is found, and removed when asked for', async () => {
    await using world = await World.make();
    const launcher = await world.ensure();
    const slot = await launcher.createSlot({ internet: true });
    const ours = async (remove: boolean) =>
      (await launcher.leftovers(remove)).filter(({ name }) => name === slot.namespace);
    assert.deepEqual(await ours(false), [], 'a slot in use is none');
    await launcher.destroySlot(slot.index);
    execFileSync('ip', ['netns', 'add', slot.namespace]);
    assert.deepEqual(await ours(true), [{ kind: 'namespace', name: slot.namespace }]);
    assert.deepEqual(await ours(false), []);
  });

  test('together with a VM is told of by the next one', async () => {
    await using world = await World.make();
    const launcher = await world.ensure();
    const exits: VmExit[] = [];
    launcher.onVmExit((exit) => exits.push(exit));
    const slot = await launcher.createSlot({ internet: true });
    const vm = await launcher.spawnVm(await world.vm('both', slot.index));
    const pid = world.launcherPid();
    assert.ok(pid);
    sendSignal(pid, 'SIGSTOP');
    await endProcess(vm.pid).catch(() => {});
    await endProcess(pid);
    await pollUntil('the exit event', () => exits[0], SECOND);
    assert.deepEqual(exits, [{ id: 'both', pid: vm.pid, code: null, signal: null, oom: false }]);
    assert.deepEqual(await launcher.listVms(), []);
  });

  test('in the middle of anything leaves nothing that the next one does not find', async () => {
    await using world = await World.make();
    const launcher = await world.ensure();
    const namespaces = new Set<string>();
    for (const delay of [1, 4, 8, 14, 20, 26, 34, 45]) {
      const work = launcher
        .createSlot({ internet: true })
        .then(async (slot) => {
          namespaces.add(slot.namespace);
          await launcher.spawnVm(await world.vm(`vm-${delay}`, slot.index));
        })
        .catch(() => {});
      await sleep(delay);
      const pid = world.launcherPid();
      if (pid) await endProcess(pid);
      await work;
    }
    // What a fresh launcher lists is all that is left of them.
    const vms = await launcher.listVms();
    const slots = await launcher.listSlots();
    for (const vm of vms) assert.ok(slots.some(({ index }) => index === vm.slot));
    for (const { namespace } of slots) assert.ok(existsSync(`/run/netns/${namespace}`));
    for (const { id } of vms) await launcher.killVm(id, 0);
    for (const { index } of slots) await launcher.destroySlot(index);
    const strays = pids().filter((pid) => commandLine(pid).includes(world.home) && commandLine(pid).includes('qemu'));
    assert.deepEqual(strays, []);
    assert.deepEqual(await readdir(vmDirectory(world.home)), []);
    assert.deepEqual(
      [...namespaces].filter((name) => existsSync(`/run/netns/${name}`)),
      [],
    );
  });

  test('takes its jobs along', async () => {
    await using world = await World.make();
    const launcher = await world.ensure();
    const job = launcher.run({ tool: QEMU, args: (await world.vm('job', 0)).argv.slice(1), timeoutMs: 60_000 });
    job.catch(() => {});
    const isJob = (pid: number) =>
      commandLine(pid).startsWith(`/usr/bin/${QEMU}`) && commandLine(pid).includes(world.home);
    const running = await pollUntil('the job', () => pids().find(isJob), SECOND);
    const pid = world.launcherPid();
    assert.ok(pid);
    await endProcess(pid);
    await assert.rejects(job, { code: 'internal' });
    await pollUntil('the end of the job', () => (commandLine(running) === '' ? true : undefined), SECOND);
  });
});

describe('a launcher that nobody needs', { skip }, () => {
  test('ends and takes its slots along, and a new one is started when somebody comes', async () => {
    await using world = await World.make();
    const launcher = await world.ensure();
    const slot = await launcher.createSlot({ internet: true });
    const pid = world.launcherPid();
    assert.ok(pid);
    await launcher.close();
    await assert.rejects(launcher.listVms(), { code: 'shutting_down' });
    await pollUntil('its end', () => (commandLine(pid) === '' ? true : undefined), SECOND);
    assert.equal(existsSync(`/run/netns/${slot.namespace}`), false);
    assert.deepEqual(await (await world.ensure()).listSlots(), []);
  });

  test('stays for its VMs, and hands them to the server that comes next', async () => {
    await using world = await World.make();
    const first = await world.ensure();
    const slot = await first.createSlot({ internet: true });
    const vm = await first.spawnVm(await world.vm('patient', slot.index));
    const pid = world.launcherPid();
    await first.close();
    await sleep(4000);
    const second = await world.ensure();
    assert.equal(world.launcherPid(), pid);
    assert.deepEqual(await second.listVms(), [vm]);
    assert.deepEqual(await second.listSlots(), [slot]);
  });

  test('is one, however many ask for it at the same time', async () => {
    await using world = await World.make();
    const launchers = await Promise.all([1, 2, 3, 4].map(() => world.ensure()));
    const slot = await launchers[0]?.createSlot({ internet: true });
    for (const launcher of launchers) assert.deepEqual(await launcher.listSlots(), [slot]);
  });
});
