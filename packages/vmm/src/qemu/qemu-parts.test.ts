/** The parts of the driver that need no QEMU: command lines, state files, ends. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { VmExit } from '@aenv/linux';
import fc from 'fast-check';
import type { BootRequest } from '../driver.ts';
import { describeEnd, readLog } from './exits.ts';
import { bootArguments, restoreArguments, vmLimits } from './machine.ts';
import { encodeState, readStateFile, type StateOrigin, stateOrigin } from './state-file.ts';

const REQUEST: BootRequest = {
  id: 'vm',
  slot: { index: 3, namespace: 'aenv-3', tap: 'tap0', hostAddress: '10.11.0.14', uid: 2_000_003 },
  resources: { cpus: 2, memoryMb: 512 },
  directory: '/home/vms/a,b',
  memoryFile: '/home/m,1',
  diskFile: '/home/d,1',
  kernel: '/k',
  initramfs: '/i',
  kernelArguments: ['aenv.dns=1.1.1.1'],
  memory: 'shared',
};
const RESTORE = { ...REQUEST, stateFile: '/s' };

const optionOf = (argv: string[], option: string) => argv[argv.indexOf(option) + 1] ?? '';

test('the boot of a template maps memory shared, every other start private and read-only', () => {
  const memory = (argv: string[]) => argv.find((word) => word.startsWith('memory-backend-file')) ?? '';
  assert.match(memory(bootArguments('q', 'tcg', REQUEST, [])), /mem-path=\/home\/m,,1,.*share=on$/);
  const cold = bootArguments('q', 'tcg', { ...REQUEST, memory: 'private' }, []);
  assert.match(memory(cold), /share=off,readonly=on,rom=off$/);
  assert.match(memory(restoreArguments('q', 'tcg', RESTORE)), /share=off,readonly=on,rom=off$/);
});

test('boot and restore have the same devices in the same order', () => {
  const devices = (argv: string[]) =>
    argv.filter((_, index) => ['-device', '-netdev', '-blockdev'].includes(argv[index - 1] ?? ''));
  const booted = devices(bootArguments('q', 'kvm', REQUEST, []));
  assert.equal(booted.length, 5);
  assert.deepEqual(devices(restoreArguments('q', 'kvm', RESTORE)), booted);
});

test('every start denies what QEMU can do without', () => {
  for (const argv of [bootArguments('q', 'tcg', REQUEST, []), restoreArguments('q', 'kvm', RESTORE)]) {
    assert.match(optionOf(argv, '-sandbox'), /^on,.*elevateprivileges=deny,spawn=deny,resourcecontrol=deny$/);
  }
});

test('the kernel gets our words, the clock and those of the request; others are refused', () => {
  const append = optionOf(bootArguments('q', 'tcg', REQUEST, ['tsc_early_khz=5']), '-append');
  assert.match(
    append,
    /aenv\.root=\/dev\/vda .*aenv\.ip=169\.254\.0\.21\/30 aenv\.gw=169\.254\.0\.22 tsc_early_khz=5 aenv\.dns=1\.1\.1\.1$/,
  );
  for (const word of ['', 'a b', 'a\n', 'x="y"']) {
    assert.throws(() => bootArguments('q', 'tcg', { ...REQUEST, kernelArguments: [word] }, []), {
      code: 'config_invalid',
    });
  }
});

test('an emulated VM is given room for translated code', () => {
  const kvm = vmLimits('kvm', REQUEST.resources);
  assert.ok(kvm.memoryBytes > 512 * 2 ** 20);
  assert.ok(vmLimits('tcg', REQUEST.resources).memoryBytes > kvm.memoryBytes);
  assert.equal(kvm.cpus, 2);
});

const ORIGIN: StateOrigin = { accel: 'tcg', qemu: '10.0.2' };

test('a state names its origin whatever the stream holds, and a damaged one is refused', () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.nat(), (stream, cut) => {
      const state = encodeState(stream, ORIGIN);
      assert.deepEqual(state.subarray(0, stream.length), Buffer.from(stream));
      assert.deepEqual(stateOrigin(state), ORIGIN);
      const shorter = state.subarray(0, cut % state.length);
      assert.throws(() => stateOrigin(shorter), { code: 'restore_failed' });
    }),
  );
  const wrongLength = encodeState(Buffer.alloc(8), ORIGIN);
  wrongLength.writeUInt32LE(1000, wrongLength.length - 12);
  assert.throws(() => stateOrigin(wrongLength), { code: 'restore_failed' });
});

async function scratch(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'aenv-parts-'));
  t.after(() => rm(directory, { recursive: true }));
  return directory;
}

test('no link is followed to a state or a log', async (t) => {
  const directory = await scratch(t);
  const link = join(directory, 'link');
  await symlink('/etc/passwd', link);
  await assert.rejects(readStateFile(link), { code: 'ELOOP' });
  assert.equal(await readLog(link), '');
  const state = join(directory, 'state');
  await writeFile(state, 'abc');
  assert.deepEqual(await readStateFile(state), await readFile(state));
});

test('the end of a long log is read, without what a terminal would obey', async (t) => {
  const file = join(await scratch(t), 'log');
  await writeFile(file, `${'x'.repeat(100_000)}\r\n\x1b[31mred\x07\tend\n`);
  const log = await readLog(file);
  assert.ok(log.length < 40_000);
  assert.ok(log.endsWith('x\n[31mred\tend\n'));
});

test('the cause of an end', () => {
  const exit = (part: Partial<VmExit>): VmExit => ({ id: 'vm', pid: 1, code: null, signal: null, oom: false, ...part });
  const panic = `${'boot\n'.repeat(30)}[1.0] Kernel panic - not syncing: x\n${'trace\n'.repeat(30)}`;
  assert.equal(describeEnd(exit({ signal: 'SIGKILL' }), true, panic).cause, 'requested');
  assert.equal(describeEnd(exit({ signal: 'SIGKILL', oom: true }), false, '').cause, 'oom');
  const panicked = describeEnd(exit({ code: 0 }), false, panic);
  assert.equal(panicked.cause, 'guest_panic');
  assert.match(panicked.detail, /^Kernel panic.*\n(trace\n){18}trace$/);
  assert.deepEqual(describeEnd(exit({ code: 0 }), false, 'bye\n'), { cause: 'guest_shutdown', detail: 'bye' });
  const crash = describeEnd(exit({ signal: 'SIGSEGV' }), false, 'last words\n');
  assert.deepEqual(crash, { cause: 'vmm_crash', detail: 'QEMU ended with signal SIGSEGV\nlast words' });
});
