import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { chmod, link, mkdir, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pollUntil } from '@aenv/std';
import type { VmExit } from '../launcher-api.ts';
import { isAlive } from '../processes.ts';
import { missing, QEMU, World } from '../testing/world.ts';
import { cgroupProblem, cgroupVersion } from './cgroups.ts';

const skip = missing(QEMU);

function status(pid: number): Record<string, string> {
  const lines = readFileSync(`/proc/${pid}/status`, 'utf8').split('\n');
  return Object.fromEntries(lines.map((line) => line.split(':\t', 2) as [string, string]));
}

/** Waits until the whole chain of programs has become QEMU. */
function qemu(pid: number): Promise<string> {
  return pollUntil(
    'the start of QEMU',
    () => {
      const name = readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
      return name.startsWith('qemu') && status(pid).Seccomp === '2' ? name : undefined;
    },
    { intervalMs: 5, timeoutMs: 10_000 },
  );
}

describe('VMMs', { skip }, () => {
  test('run without privileges, in their slot, and end when told to', async () => {
    await using world = await World.make();
    const launcher = await world.start();
    const exits: VmExit[] = [];
    launcher.onVmExit((exit) => exits.push(exit));
    const slot = await launcher.createSlot({ internet: true });
    const request = await world.vm('confined', slot.index);
    await writeFile(join(world.home, 'disk'), 'x');
    const vm = await launcher.spawnVm({ ...request, own: [join(world.home, 'disk')] });
    await qemu(vm.pid);

    const seen = status(vm.pid);
    assert.equal(seen.Uid, Array(4).fill(slot.uid).join('\t'));
    assert.equal(seen.Gid, Array(4).fill(slot.uid).join('\t'));
    assert.equal(seen.Groups?.trim(), '');
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) assert.equal(seen[set], '0'.repeat(16), set);
    assert.equal(seen.NoNewPrivs, '1');
    assert.equal(statSync(`/proc/${vm.pid}/ns/net`).ino, statSync(`/run/netns/${slot.namespace}`).ino);
    const directory = await stat(request.directory);
    assert.deepEqual([directory.uid, directory.mode & 0o777], [slot.uid, 0o700]);
    const disk = await stat(join(world.home, 'disk'));
    assert.deepEqual([disk.uid, disk.mode & 0o777], [slot.uid, 0o600]);

    assert.deepEqual(await launcher.listVms(), [vm]);
    await assert.rejects(launcher.destroySlot(slot.index), { code: 'conflict' });
    await assert.rejects(launcher.spawnVm(request), { code: 'conflict' });
    await assert.rejects(launcher.spawnVm({ ...request, id: 'second' }), { code: 'conflict' });

    await launcher.killVm('confined', 5000);
    assert.equal(isAlive(vm), false);
    assert.deepEqual(await launcher.listVms(), []);
    await pollUntil('the exit event', () => exits[0], { intervalMs: 1, timeoutMs: 1000 });
    assert.deepEqual(
      exits.map(({ id, pid, oom }) => ({ id, pid, oom })),
      [{ id: 'confined', pid: vm.pid, oom: false }],
    );
    await launcher.killVm('confined', 0);
    await launcher.destroySlot(slot.index);
    await launcher.destroySlot(slot.index);
    assert.deepEqual(await launcher.listSlots(), []);
  });

  test('are limited by cgroups, and the kernel names the one that it ended for its memory', async (t) => {
    const problem = await cgroupProblem();
    if (problem) return t.skip(`no cgroups here: ${problem}`);
    await using world = await World.make();
    const launcher = await world.start();
    const ended = new Promise<VmExit>((resolve) => launcher.onVmExit(resolve));
    const slot = await launcher.createSlot({ internet: true });
    const request = await world.vm('limited', slot.index);
    const vm = await launcher.spawnVm({ ...request, limits: { memoryBytes: 4 << 20, cpus: 0.5, pids: 30 } });
    const exit = await ended;
    assert.deepEqual({ ...exit }, { id: 'limited', pid: vm.pid, code: null, signal: 'SIGKILL', oom: true });
    const parent = cgroupVersion() === 1 ? '/sys/fs/cgroup/memory/aenv' : '/sys/fs/cgroup/aenv';
    await assert.rejects(stat(`${parent}/${slot.index}-limited`), { code: 'ENOENT' });
  });

  test('that end at once say why', async () => {
    await using world = await World.make();
    const launcher = await world.start();
    const ended = new Promise<VmExit>((resolve) => launcher.onVmExit(resolve));
    const slot = await launcher.createSlot({ internet: false });
    const request = await world.vm('broken', slot.index);
    await launcher.spawnVm({ ...request, argv: [...request.argv, '-device', 'no-such-device'] });
    assert.equal((await ended).code, 1);
    assert.match(readFileSync(request.logFile, 'utf8'), /no-such-device/);
    await launcher.spawnVm(await world.vm('next', slot.index));
  });

  test('get no file that is sealed, a link, or another one’s', async () => {
    await using world = await World.make();
    const launcher = await world.start();
    const slot = await launcher.createSlot({ internet: false });
    const request = await world.vm('greedy', slot.index);
    const other = join(world.home, 'other');
    await mkdir(other);
    await writeFile(join(other, 'secret'), 'x');
    await link(join(other, 'secret'), join(world.home, 'hard'));
    await symlink('/etc/passwd', join(world.home, 'soft'));
    await symlink(other, join(world.home, 'way'));
    await writeFile(join(world.home, 'sealed'), 'x');
    await chmod(join(world.home, 'sealed'), 0o444);
    for (const name of ['hard', 'soft', 'way/secret', 'sealed', 'images', '../x', 'absent']) {
      const own = [`${world.home}/${name}`];
      await assert.rejects(launcher.spawnVm({ ...request, own }), { code: 'bad_request' }, name);
    }
    await assert.rejects(launcher.spawnVm({ ...request, directory: `${world.home}/way/x` }), { code: 'bad_request' });
    await assert.rejects(launcher.spawnVm({ ...request, slot: slot.index + 1 }), { code: 'not_found' });
    assert.equal((await stat(join(other, 'secret'))).uid, 0);
    assert.deepEqual(await launcher.listVms(), []);
  });
});
