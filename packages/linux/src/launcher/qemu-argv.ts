/**
 * The options that a VMM may be started with. The user id, the namespaces and the seccomp filter are what confines QEMU;
 * this list keeps out what would start other programs, change users, or leave the filter off.
 */
import { AenvError } from '@aenv/std';
import { textList } from './fields.ts';

export const QEMU = 'qemu-system-x86_64';

const FLAGS = new Set(['-nodefaults', '-no-user-config', '-no-reboot', '-no-shutdown', '-nographic', '-S']);

const WITH_VALUE = new Set([
  '-M', '-machine', '-accel', '-cpu', '-m', '-smp', '-object', '-name', '-msg', '-action', '-global', '-rtc', '-sandbox',
  '-kernel', '-initrd', '-append', '-bios', '-L', '-display', '-serial', '-chardev', '-mon', '-qmp', '-drive', '-blockdev',
  '-device', '-netdev', '-incoming', '-watchdog-action',
]); // biome-ignore format: a list of words

const SANDBOX_DENIES = ['elevateprivileges=deny', 'spawn=deny', 'resourcecontrol=deny'];

/** Further conditions on the value of an option. */
const VALUES: Record<string, (value: string) => boolean> = {
  '-sandbox': isSandbox,
  '-incoming': (value) => value === 'defer' || value.startsWith('file:/'),
  '-netdev': isTap,
  '-chardev': (value) => /^(socket,|file,|null,|ringbuf,|stdio,)/.test(value) && !/\bhost=|\bport=/.test(value),
  '-serial': (value) => /^(file:|chardev:|null$|none$|stdio$)/.test(value),
  '-qmp': (value) => value.startsWith('unix:/') || value.startsWith('unix:path=/'),
  '-display': (value) => value === 'none',
};

/** Whether a value has all of `words` and gives no key twice: of two, QEMU takes the last. */
function hasOnce(value: string, wanted: string[]): boolean {
  const words = value.split(',');
  const keys = words.map((word) => word.split('=')[0]);
  return new Set(keys).size === keys.length && wanted.every((word) => words.includes(word));
}

function isSandbox(value: string): boolean {
  return value.startsWith('on,') && hasOnce(value, SANDBOX_DENIES);
}

function isTap(value: string): boolean {
  return value.startsWith('tap,') && hasOnce(value, ['ifname=tap0', 'script=no', 'downscript=no']);
}

function refuse(message: string): never {
  throw new AenvError('bad_request', `the launcher does not start ${QEMU} with ${message}`);
}

/** Checks program and arguments of a VMM; `bad_request` names the argument that is not allowed. */
export function qemuArgv(value: unknown): string[] {
  const argv = textList(value, 'argv', 200, 8192);
  if (argv[0] !== QEMU) throw new AenvError('bad_request', `argv[0] must be ${QEMU}`);
  let sandboxed = false;
  for (let at = 1; at < argv.length; at += 1) {
    const option = argv[at] ?? '';
    if (FLAGS.has(option)) continue;
    if (!WITH_VALUE.has(option)) refuse(`the argument '${option.slice(0, 100)}'`);
    at += 1;
    const given = argv[at];
    if (given === undefined || VALUES[option]?.(given) === false) refuse(`'${option} ${given?.slice(0, 100) ?? ''}'`);
    sandboxed ||= option === '-sandbox';
  }
  if (!sandboxed) refuse('no -sandbox on,elevateprivileges=deny,spawn=deny,resourcecontrol=deny');
  return argv;
}
