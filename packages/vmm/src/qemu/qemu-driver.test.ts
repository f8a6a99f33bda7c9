import assert from 'node:assert/strict';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { vmmContract } from '../testing/contract.ts';
import { endingProgram } from '../testing/guests.ts';
import { missingForQemu, QemuHarness } from '../testing/qemu-harness.ts';
import { ALIVE_TEXT, aliveProgram } from '../tiny-program.ts';
import { encodeState } from './state-file.ts';

async function open(t: TestContext): Promise<QemuHarness | undefined> {
  const reason = missingForQemu();
  if (reason === undefined) return QemuHarness.open();
  t.skip(reason);
  return undefined;
}

vmmContract('qemu', open);

async function withHarness(t: TestContext, run: (harness: QemuHarness) => Promise<void>): Promise<void> {
  const harness = await open(t);
  if (!harness) return;
  try {
    await run(harness);
  } finally {
    await harness[Symbol.asyncDispose]();
  }
}

test('a guest that powers off is told from one that panics', (t) =>
  withHarness(t, async (harness) => {
    const off = await harness.driver.boot(await harness.bootRequest('off', aliveProgram()));
    await off.resume();
    const shutdown = await off.ended;
    assert.equal(shutdown.cause, 'guest_shutdown');
    assert.ok(shutdown.detail.includes(ALIVE_TEXT), shutdown.detail);
    const panicking = await harness.driver.boot(await harness.bootRequest('panic', endingProgram()));
    await panicking.resume();
    const panic = await panicking.ended;
    assert.equal(panic.cause, 'guest_panic');
    assert.match(panic.detail, /^Kernel panic - not syncing: Attempted to kill init/);
  }));

test('QEMU runs without privileges and with a seccomp filter', (t) =>
  withHarness(t, async (harness) => {
    const request = await harness.bootRequest('confined');
    const vm = await harness.driver.boot(request);
    const status = await readFile(`/proc/${vm.record.pid}/status`, 'utf8');
    assert.match(status, new RegExp(`^Uid:\\t${request.slot.uid}\\t${request.slot.uid}\\t`, 'm'));
    assert.match(status, /^CapEff:\t0+$/m);
    assert.match(status, /^NoNewPrivs:\t1$/m);
    assert.match(status, /^Seccomp:\t2$/m);
    assert.equal((await stat(request.memoryFile)).size, request.resources.memoryMb * 2 ** 20);
    await vm.kill(0);
  }));

test('a start that QEMU refuses fails with what it said, and leaves no process', (t) =>
  withHarness(t, async (harness) => {
    const request = await harness.bootRequest('refused');
    const broken = { ...request, kernel: request.diskFile };
    await assert.rejects(harness.driver.boot(broken), {
      code: 'sandbox_start_failed',
      message: /qemu: linux kernel too old/,
    });
    assert.deepEqual(await harness.launcher.listVms(), []);
  }));

test('a state of another accelerator, or one that QEMU does not understand, is refused with the reason', (t) =>
  withHarness(t, async (harness) => {
    const request = await harness.bootRequest('origin');
    const stateFile = join(harness.directory, 'x.state');
    const vm = await harness.driver.boot(request);
    await vm.kill(0);
    await writeFile(stateFile, encodeState(Buffer.from('x'), { accel: 'kvm', qemu: '9.9.9' }));
    await assert.rejects(harness.driver.restore({ ...request, stateFile }), {
      code: 'restore_failed',
      message: /saved under hardware virtualisation \(KVM\)/,
    });
    await writeFile(stateFile, encodeState(Buffer.from('nonsense'), { accel: 'tcg', qemu: '9.9.9' }));
    await assert.rejects(harness.driver.restore({ ...request, stateFile }), {
      code: 'restore_failed',
      message: /did not accept a state that QEMU 9\.9\.9 saved/,
    });
    assert.deepEqual(await harness.launcher.listVms(), []);
  }));
