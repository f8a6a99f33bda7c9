/**
 * The frequency of the host's time stamp counter, for emulated guests.
 *
 * A microvm has no clock but this counter by which a kernel could find its frequency, except for the PIT, and an emulated
 * PIT is too slow for that on a host that is busy. Linux then waits for ticks that never come: it hangs before its first
 * message. An emulated counter runs at the host's rate, so the kernel is told.
 */
import { readFile } from 'node:fs/promises';

/** Kernel arguments for a guest under emulation; none when the frequency is not known for certain. */
export async function hostClockArguments(): Promise<string[]> {
  const khz = tscKhz(await readFile('/proc/cpuinfo', 'utf8'));
  return khz === undefined ? [] : [`tsc_early_khz=${khz}`];
}

/**
 * Frequency in kHz by a /proc/cpuinfo. In a virtual machine `cpu MHz` is that of the counter; on bare metal it is the
 * present clock of the core, which says nothing.
 */
export function tscKhz(cpuinfo: string): number | undefined {
  const flags = new Set(/^flags\s*:(.*)$/m.exec(cpuinfo)?.[1]?.trim().split(/\s+/));
  if (!flags.has('hypervisor') || !flags.has('constant_tsc')) return undefined;
  const mhz = Number(/^cpu MHz\s*:\s*([0-9.]+)$/m.exec(cpuinfo)?.[1]);
  return mhz > 0 ? Math.round(mhz * 1000) : undefined;
}
