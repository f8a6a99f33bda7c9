import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Launcher, SpawnRequest, VmExit } from '@aenv/linux';
import { probeAccelerator } from './accelerator.ts';
import { ALIVE_TEXT } from './tiny-program.ts';

interface Host {
  home: string;
  kernel: string;
  device: string;
  /** What was asked of the launcher, in order. */
  calls: string[];
  launcher: Launcher;
}

/** A machine whose launcher calls `guest` instead of starting QEMU. */
async function host(t: TestContext, guest: (request: SpawnRequest, end: () => void) => Promise<void>): Promise<Host> {
  const home = await mkdtemp(join(tmpdir(), 'aenv-probe-'));
  t.after(() => rm(home, { recursive: true, force: true }));
  const [kernel, device] = [join(home, 'vmlinuz'), join(home, 'kvm')];
  await writeFile(kernel, 'kernel');
  await writeFile(device, '');
  const calls: string[] = [];
  const listeners = new Set<(exit: VmExit) => void>();
  const unused = () => Promise.reject(new Error('not for a probe'));
  const launcher: Launcher = {
    createSlot: async ({ internet }) => {
      calls.push(`slot internet=${internet}`);
      return { index: 1, namespace: 'aenv-1', tap: 'tap0', hostAddress: '10.11.0.6', uid: 2_000_001 };
    },
    spawnVm: async (request) => {
      calls.push('spawn');
      const end = () => {
        for (const listener of listeners) listener({ id: request.id, pid: 1, code: 1, signal: null, oom: false });
      };
      await guest(request, end);
      return { id: request.id, pid: 1, startTicks: 1, slot: request.slot };
    },
    killVm: async () => void calls.push('kill'),
    destroySlot: async () => void calls.push('destroy'),
    onVmExit: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    setPolicy: unused,
    listSlots: unused,
    listVms: unused,
    giveFile: unused,
    dumpMemory: unused,
    patchMemory: unused,
    seal: unused,
    leftovers: unused,
    run: unused,
    close: async () => {},
  };
  return { home, kernel, device, calls, launcher };
}

test('a guest that speaks proves KVM; the answer is kept until the guest kernel changes', async (t) => {
  const given = await host(t, async ({ logFile, argv }) => {
    assert.deepEqual(argv.slice(argv.indexOf('-accel'), argv.indexOf('-accel') + 2), ['-accel', 'kvm']);
    await writeFile(logFile, `boot\r\n${ALIVE_TEXT}`);
  });
  const expected = { accelerator: 'kvm', reason: 'a guest booted with it' };
  assert.deepEqual(await probeAccelerator(given), expected);
  assert.deepEqual(await probeAccelerator(given), expected);
  assert.deepEqual(given.calls, ['slot internet=false', 'spawn', 'kill', 'destroy']);
  assert.deepEqual((await readdir(given.home)).sort(), ['accelerator.json', 'kvm', 'vmlinuz']);
  await writeFile(given.kernel, 'another kernel');
  await probeAccelerator(given);
  assert.equal(given.calls.filter((call) => call === 'spawn').length, 2);
});

test('a QEMU that ends first is the reason for TCG, in its own words', async (t) => {
  const given = await host(t, async ({ logFile }, end) => {
    await writeFile(logFile, 'Could not access KVM kernel module: Permission denied\n');
    end();
  });
  const { accelerator, reason } = await probeAccelerator(given);
  assert.equal(accelerator, 'tcg');
  assert.match(reason, /kvm exists, but QEMU ended before .*Permission denied$/);
});

test('a machine without the device is not probed; a damaged answer is', async (t) => {
  const given = await host(t, async ({ logFile }) => writeFile(logFile, ALIVE_TEXT));
  const without = await probeAccelerator({ ...given, device: join(given.home, 'none') });
  assert.deepEqual([without.accelerator, given.calls], ['tcg', []]);
  await writeFile(join(given.home, 'accelerator.json'), '{"accelerator":');
  assert.equal((await probeAccelerator(given)).accelerator, 'kvm');
});

test('a probe that cannot be made leaves nothing behind', async (t) => {
  const given = await host(t, () => Promise.reject(new Error('no room')));
  await assert.rejects(probeAccelerator(given), /no room/);
  assert.deepEqual(given.calls.slice(-2), ['kill', 'destroy']);
  assert.deepEqual((await readdir(given.home)).sort(), ['kvm', 'vmlinuz']);
});
