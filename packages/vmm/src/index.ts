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
