import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QEMU, qemuArgv } from './qemu-argv.ts';

const SANDBOX = ['-sandbox', 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny'];
const GOOD = [QEMU, '-S', '-m', '64M', ...SANDBOX, '-netdev', 'tap,id=n,ifname=tap0,script=no,downscript=no'];

test('a command line of the driver passes as it is', () => {
  assert.deepEqual(qemuArgv(GOOD), GOOD);
  assert.deepEqual(qemuArgv([...GOOD, '-incoming', 'defer']), [...GOOD, '-incoming', 'defer']);
});

const refused: Record<string, unknown> = {
  'another program': ['/bin/sh', ...GOOD.slice(1)],
  'a path': [`/usr/bin/${QEMU}`, ...GOOD.slice(1)],
  'no filter': [QEMU, '-m', '64M'],
  'a filter that is off': [QEMU, '-sandbox', 'off'],
  'a filter with a hole': [QEMU, '-sandbox', 'on,elevateprivileges=deny,spawn=allow,resourcecontrol=deny'],
  'a filter that takes back what it denies': [
    QEMU,
    '-sandbox',
    'on,elevateprivileges=deny,spawn=deny,resourcecontrol=deny,spawn=allow',
  ],
  'a second filter that undoes the first': [...GOOD, '-sandbox', 'off'],
  'a script for the tap': [...GOOD, '-netdev', 'tap,id=n,ifname=tap0,script=/tmp/x,downscript=no'],
  'two scripts for the tap': [...GOOD, '-netdev', 'tap,id=n,ifname=tap0,script=no,downscript=no,script=/tmp/x'],
  'a network through the host': [...GOOD, '-netdev', 'user,id=n'],
  'a program as migration source': [...GOOD, '-incoming', 'exec:cat /etc/shadow'],
  'another user': [...GOOD, '-runas', 'root'],
  'a daemon': [...GOOD, '-daemonize'],
  'a file of options': [...GOOD, '-readconfig', '/tmp/x'],
  'a monitor on TCP': [...GOOD, '-qmp', 'tcp:0.0.0.0:4444,server'],
  'a character device on TCP': [...GOOD, '-chardev', 'socket,id=c,host=0.0.0.0,port=1,server=on'],
  'an option without its value': [...GOOD, '-m'],
  'a stray word': [...GOOD, 'disk.img'],
  'a NUL': [...GOOD, '-m', '1\0'],
  'no list': 'qemu',
};
for (const [name, argv] of Object.entries(refused)) {
  test(`${name} is refused`, () => assert.throws(() => qemuArgv(argv), { code: 'bad_request' }));
}
