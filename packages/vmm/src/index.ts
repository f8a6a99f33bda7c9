export { type ProbeRequest, type ProbeResult, probeAccelerator } from './accelerator.ts';
export type {
  BootRequest,
  RestoreRequest,
  Vm,
  VmEnd,
  VmmDriver,
  VmRecord,
  VmResources,
  VmStart,
} from './driver.ts';
export { buildInitramfs, type InitramfsParts } from './initramfs.ts';
export type { Accelerator } from './qemu/machine.ts';
export { createQemuDriver, type QemuDriverOptions, type QemuVmmDriver } from './qemu/qemu-driver.ts';
