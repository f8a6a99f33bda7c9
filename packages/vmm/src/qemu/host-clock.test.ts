import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tscKhz } from './host-clock.ts';

const cpuinfo = (flags: string, mhz = '2596.120') =>
  `processor\t: 0\nmodel name\t: X\ncpu MHz\t\t: ${mhz}\nflags\t\t: ${flags}\n\nprocessor\t: 1\ncpu MHz\t\t: 1.0\nflags\t\t: fpu\n`;

test('in a virtual machine the frequency is that of the first processor, in kHz', () => {
  assert.equal(tscKhz(cpuinfo('fpu tsc constant_tsc hypervisor')), 2_596_120);
});

test('nothing is claimed where cpu MHz is not the rate of the counter', () => {
  assert.equal(tscKhz(cpuinfo('fpu tsc constant_tsc')), undefined, 'bare metal');
  assert.equal(tscKhz(cpuinfo('fpu tsc hypervisor')), undefined, 'a counter that changes its rate');
  assert.equal(tscKhz(cpuinfo('constant_tsc hypervisor', '0.000')), undefined);
  assert.equal(tscKhz(''), undefined);
});
