/** QEMU's command line. A restore must put the same devices together as the boot did, in the same order. */
import { GUEST_ADDRESS, GUEST_GATEWAY, GUEST_MAC, GUEST_PREFIX, type VmLimits } from '@aenv/linux';
import { AenvError } from '@aenv/std';
import type { BootRequest, RestoreRequest, VmResources, VmStart } from '../driver.ts';
import { diskNode, FIRST_NODE } from './disk.ts';

export type Accelerator = 'kvm' | 'tcg';

/**
 * MiB of translated code that an emulated VM keeps at most. QEMU's default is up to 1 GiB for each VM, which would count
 * towards the memory limit of the VM's cgroup.
 */
export const TRANSLATION_BUFFER_MB = 64;
/** MiB beside guest RAM and translated code: QEMU itself, its threads, the queues of its devices. */
const OVERHEAD_MB = 128;
/** QEMU's thread pool grows to 64; the rest is for its own threads. */
const THREADS_BESIDE_CPUS = 80;

export const DEFAULT_QEMU = 'qemu-system-x86_64';
export const QMP_SOCKET = 'qmp.sock';
export const CONSOLE_LOG = 'console.log';

/** What QEMU can do without: old and privileged calls, starting programs, changing its own limits. */
const SECCOMP = 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny';

/**
 * The first words of every guest's command line. `reboot=t` makes a reset end QEMU at once, `panic=-1` turns a panic into
 * one. The rest spares an emulated guest work that finds nothing.
 */
const KERNEL_ARGUMENTS = [
  'console=ttyS0',
  'quiet',
  'reboot=t',
  'panic=-1',
  'pci=off',
  '8250.nr_uarts=1',
  'random.trust_cpu=on',
  'aenv.root=/dev/vda',
  'aenv.rootfstype=ext4',
  `aenv.ip=${GUEST_ADDRESS}/${GUEST_PREFIX}`,
  `aenv.gw=${GUEST_GATEWAY}`,
];

/** `clock`: what `hostClockArguments` says. */
export function bootArguments(qemu: string, accel: Accelerator, request: BootRequest, clock: string[]): string[] {
  return [
    ...(request.memory === 'shared'
      ? machineArguments(qemu, accel, request, 'share=on', [])
      : privateMachineArguments(qemu, accel, request)),
    '-S',
    '-kernel',
    request.kernel,
    '-initrd',
    request.initramfs,
    '-append',
    kernelCommandLine(clock, request.kernelArguments),
  ];
}

function kernelCommandLine(clock: string[], given: string[]): string {
  return [...KERNEL_ARGUMENTS, ...clock, ...given.map(checkKernelArgument)].join(' ');
}

/**
 * Waits for its state with stopped processors. Kernel and initramfs are not loaded again: the guest never looks at them
 * after its boot, and each VM would hold a copy.
 */
export function restoreArguments(qemu: string, accel: Accelerator, request: RestoreRequest): string[] {
  return [
    ...privateMachineArguments(qemu, accel, request),
    '-S',
    '-incoming',
    'defer',
    // Device state is saved without RAM and without this section.
    '-global',
    'migration.send-configuration=off',
  ];
}

function privateMachineArguments(qemu: string, accel: Accelerator, start: VmStart): string[] {
  // Private and, for the file, read-only: QEMU could not write it even if it wanted to.
  // suppress-vmdesc: the state carries no description of itself.
  return machineArguments(qemu, accel, start, 'share=off,readonly=on,rom=off', ['suppress-vmdesc=on']);
}

/** A guest with no device but its console, for the probe. */
export function probeArguments(
  accel: Accelerator,
  resources: VmResources,
  kernel: string,
  initramfs: string,
): string[] {
  return [
    ...baseArguments(DEFAULT_QEMU, accel, resources),
    '-M',
    'microvm,rtc=on,pit=on,pic=on',
    '-kernel',
    kernel,
    '-initrd',
    initramfs,
    '-append',
    KERNEL_ARGUMENTS.join(' '),
  ];
}

export function vmLimits(accel: Accelerator, { cpus, memoryMb }: VmResources): VmLimits {
  const translation = accel === 'tcg' ? TRANSLATION_BUFFER_MB : 0;
  return { memoryBytes: (memoryMb + translation + OVERHEAD_MB) * 2 ** 20, cpus, pids: cpus + THREADS_BESIDE_CPUS };
}

function acceleratorArguments(accel: Accelerator): string[] {
  // A host CPU's features under KVM; under TCG all that QEMU can emulate.
  if (accel === 'kvm') return ['-accel', 'kvm', '-cpu', 'host'];
  return ['-accel', `tcg,tb-size=${TRANSLATION_BUFFER_MB}`, '-cpu', 'max'];
}

/** The parts that every machine of ours has, the one that probes the accelerator included. */
function baseArguments(qemu: string, accel: Accelerator, { cpus, memoryMb }: VmResources): string[] {
  return [
    qemu,
    '-nodefaults',
    '-no-user-config',
    '-no-reboot',
    '-display',
    'none',
    '-sandbox',
    SECCOMP,
    ...acceleratorArguments(accel),
    '-smp',
    String(cpus),
    '-m',
    `${memoryMb}M`,
    // The launcher cuts the file that takes stdout.
    '-chardev',
    'stdio,id=console,signal=off',
    '-serial',
    'chardev:console',
  ];
}

function machineArguments(
  qemu: string,
  accel: Accelerator,
  start: VmStart,
  memoryMode: string,
  options: string[],
): string[] {
  const { resources, memoryFile, diskFile, directory, slot } = start;
  return [
    ...baseArguments(qemu, accel, resources),
    '-M',
    ['microvm', 'rtc=on', 'pit=on', 'pic=on', 'memory-backend=ram0', ...options].join(','),
    // merge=off: no page of a sandbox is ever shared with another by content.
    '-object',
    `memory-backend-file,id=ram0,size=${resources.memoryMb}M,mem-path=${optionValue(memoryFile)},merge=off,${memoryMode}`,
    '-global',
    'virtio-mmio.force-legacy=false',
    '-blockdev',
    JSON.stringify(diskNode(diskFile, FIRST_NODE)),
    '-device',
    `virtio-blk-device,drive=${FIRST_NODE}`,
    '-netdev',
    `tap,id=net0,ifname=${slot.tap},script=no,downscript=no`,
    '-device',
    `virtio-net-device,netdev=net0,mac=${GUEST_MAC}`,
    '-object',
    'rng-builtin,id=rng0',
    '-device',
    'virtio-rng-device,rng=rng0',
    '-qmp',
    `unix:${optionValue(`${directory}/${QMP_SOCKET}`)},server=on,wait=off`,
  ];
}

/** Commas separate QEMU's options; a doubled one is a comma. */
const optionValue = (text: string): string => text.replaceAll(',', ',,');

function checkKernelArgument(word: string): string {
  if (/^[0-9A-Za-z_.,:/=+-]+$/.test(word)) return word;
  throw new AenvError(
    'config_invalid',
    `the kernel argument ${JSON.stringify(word)} has a character that is not allowed`,
    {
      remedy: 'Use letters, digits and any of _.,:/=+-',
    },
  );
}
