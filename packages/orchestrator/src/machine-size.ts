/** The sizes that a template may ask for, checked before anything is made. */
import { totalmem } from 'node:os';
import { AenvError } from '@aenv/std';
import type { OrchestratorOptions } from './options.ts';

export interface MachineSize {
  cpuCount: number;
  memoryMb: number;
  diskMb: number;
}

const MAX_CPUS = 32;
/** A kernel and the guest daemon need this much, MiB. */
const MIN_MEMORY_MB = 128;
const MIN_DISK_MB = 16;
const MAX_DISK_MB = 1024 * 1024;

/** Fills in the defaults; a value that is out of range is refused with the range. */
export function machineSize(wish: Partial<MachineSize>, defaults: OrchestratorOptions['defaults']): MachineSize {
  const maxMemory = Math.floor(totalmem() / (1024 * 1024));
  return {
    cpuCount: within('cpuCount', wish.cpuCount ?? defaults.cpuCount, 1, MAX_CPUS),
    memoryMb: within('memoryMB', wish.memoryMb ?? defaults.memoryMb, MIN_MEMORY_MB, maxMemory),
    diskMb: within('diskSizeMB', wish.diskMb ?? defaults.diskMb, MIN_DISK_MB, MAX_DISK_MB),
  };
}

function within(name: string, value: number, min: number, max: number): number {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw new AenvError('bad_request', `${name} is ${value}, but has to be a whole number from ${min} to ${max}`);
}
