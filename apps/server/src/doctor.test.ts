import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isAtLeast, programFinding, refuseUnfit } from './doctor.ts';

test('versions are compared by their numbers', () => {
  const newer: [string, string][] = [
    ['8.2', '8.2'],
    ['8.2.0', '8.2'],
    ['10.0.2', '8.2'],
    ['8.10', '8.2'],
    ['1.47.2', '1.47.1'],
    ['2.0', '1.47.1'],
  ];
  for (const [found, minimum] of newer) assert.equal(isAtLeast(found, minimum), true, `${found} ≥ ${minimum}`);
  const older: [string, string][] = [
    ['7.2', '8.2'],
    ['8.1.99', '8.2'],
    ['1.47', '1.47.1'],
    ['1.47.0', '1.47.1'],
  ];
  for (const [found, minimum] of older) assert.equal(isAtLeast(found, minimum), false, `${found} < ${minimum}`);
  const version = fc.array(fc.nat(20), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(version, version, (a, b) => {
      const [left, right] = [a.join('.'), b.join('.')];
      assert.ok(isAtLeast(left, right) || isAtLeast(right, left));
    }),
  );
});

test('what programs say about themselves is understood', () => {
  const debian = 'QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2+deb13u1~bpo12+1)';
  assert.deepEqual(programFinding('qemu-system-x86_64', debian), {
    check: 'qemu-system-x86_64',
    status: 'ok',
    detail: '10.0.2',
  });
  const old = programFinding('mke2fs', 'mke2fs 1.47.0 (5-Feb-2023)');
  assert.equal(old.status, 'fail');
  assert.match(old.detail, /1\.47\.0; 1\.47\.1 or newer/);
  assert.match(old.remedy ?? '', /make setup/);
  assert.equal(programFinding('qemu-img', 'nonsense').status, 'fail');
  assert.equal(programFinding('ip', 'ip utility, iproute2-6.1.0').status, 'ok');
  assert.deepEqual(programFinding('nft', undefined).detail, 'not installed');
});

test('the start is refused for what fails, not for what is worth a warning', () => {
  const warning = { check: 'cgroups', status: 'warn', detail: 'no limits' } as const;
  assert.doesNotThrow(() => refuseUnfit([warning, programFinding('ip', 'iproute2')]));
  assert.throws(() => refuseUnfit([warning, programFinding('nft', undefined)]), {
    code: 'host_missing_tool',
    message: /nft: not installed/,
    remedy: /make setup/,
  });
  assert.throws(() => refuseUnfit([{ check: 'tun', status: 'fail', detail: 'missing' }]), { code: 'host_unsupported' });
});
