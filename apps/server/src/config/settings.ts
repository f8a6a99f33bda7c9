/**
 * Every setting of the server, once: its TOML key, environment variable, default, unit and meaning. The flags, the
 * reading of files and variables, `--help` and docs/configuration.md all follow from this table.
 */
import { address, boolean, choice, domains, integer, type Kind, optionalPath, path } from './kinds.ts';

export interface Setting<T> {
  kind: Kind<T>;
  /** Key in the TOML file; `section.key` lies in `[section]`. */
  key: string;
  env: `AENV_${string}`;
  fallback: T;
  unit?: string;
  description: string;
}

function setting<T>(value: Setting<T>): Setting<T> {
  return value;
}

export const SETTINGS = {
  home: setting({
    kind: path,
    key: 'home',
    env: 'AENV_HOME',
    fallback: '/var/lib/aenv',
    description:
      'Directory of everything the server keeps: database, images, templates, paused sandboxes, secrets. One server per directory.',
  }),
  listen: setting({
    kind: address,
    key: 'listen',
    env: 'AENV_LISTEN',
    fallback: { host: '127.0.0.1', port: 8000 },
    description:
      'Address of the API and of the traffic to sandboxes. Port 0 lets the system choose; the log names the port.',
  }),
  allowRemote: setting({
    kind: boolean,
    key: 'allow_remote',
    env: 'AENV_ALLOW_REMOTE',
    fallback: false,
    description:
      'Must be true for `listen` to be an address that other machines reach. The server speaks plain HTTP: put something that speaks TLS in front of it.',
  }),
  domains: setting({
    kind: domains,
    key: 'domains',
    env: 'AENV_DOMAINS',
    fallback: ['localhost'],
    description:
      'A request whose host is PORT-SANDBOX.DOMAIN goes to that port of that sandbox. Clients are told the first one.',
  }),
  logLevel: setting({
    kind: choice(['debug', 'info', 'warn', 'error']),
    key: 'log.level',
    env: 'AENV_LOG_LEVEL',
    fallback: 'info',
    description: 'Least severe level that is logged. The log is one JSON object a line, on standard output.',
  }),
  cpuCount: setting({
    kind: integer(1, 32),
    key: 'template.cpu_count',
    env: 'AENV_TEMPLATE_CPU_COUNT',
    fallback: 2,
    unit: 'virtual processors',
    description: 'Processors of a template (or a cold start) that does not ask for a number.',
  }),
  memoryMb: setting({
    kind: integer(128, 1_048_576),
    key: 'template.memory_mb',
    env: 'AENV_TEMPLATE_MEMORY_MB',
    fallback: 512,
    unit: 'MiB',
    description: 'Memory of a template (or a cold start) that does not ask for an amount.',
  }),
  diskMb: setting({
    kind: integer(256, 1_048_576),
    key: 'template.disk_mb',
    env: 'AENV_TEMPLATE_DISK_MB',
    fallback: 4096,
    unit: 'MiB',
    description:
      'Size of the root disk of a template (or a cold start) that does not ask for one. Space is taken as it is used.',
  }),
  readyTimeout: setting({
    kind: integer(1, 86_400),
    key: 'template.ready_timeout',
    env: 'AENV_TEMPLATE_READY_TIMEOUT',
    fallback: 300,
    unit: 'seconds',
    description: "How long a template's ready command may take to succeed before the build fails.",
  }),
  maxTimeout: setting({
    kind: integer(1, 31_536_000),
    key: 'sandbox.max_timeout',
    env: 'AENV_SANDBOX_MAX_TIMEOUT',
    fallback: 86_400,
    unit: 'seconds',
    description: 'Longest timeout that a sandbox may ask for.',
  }),
  wakeTimeout: setting({
    kind: integer(1, 86_400),
    key: 'sandbox.wake_timeout',
    env: 'AENV_SANDBOX_WAKE_TIMEOUT',
    fallback: 300,
    unit: 'seconds',
    description: 'Timeout of a paused sandbox that a request to one of its ports has woken (auto-resume).',
  }),
  pauseIdleAfter: setting({
    kind: integer(0, 31_536_000),
    key: 'sandbox.pause_idle_after',
    env: 'AENV_SANDBOX_PAUSE_IDLE_AFTER',
    fallback: 0,
    unit: 'seconds',
    description:
      'A sandbox with auto-resume is paused when nothing has gone through its ports for this long and its processor is quiet. 0 never pauses for that.',
  }),
  maxRunning: setting({
    kind: integer(1, 10_000),
    key: 'sandbox.max_running',
    env: 'AENV_SANDBOX_MAX_RUNNING',
    fallback: 100,
    unit: 'sandboxes',
    description: 'Virtual machines that may run at the same time, template builds included. Paused ones do not count.',
  }),
  memoryOvercommit: setting({
    kind: integer(10, 10_000),
    key: 'sandbox.memory_overcommit',
    env: 'AENV_SANDBOX_MEMORY_OVERCOMMIT',
    fallback: 400,
    unit: 'percent',
    description:
      "Memory that may be promised to running sandboxes, of what the machine has. Sandboxes share their template's memory and use what they touch; starts are refused in any case while less than 512 MiB are free.",
  }),
  queueTimeout: setting({
    kind: integer(0, 3600),
    key: 'sandbox.queue_timeout',
    env: 'AENV_SANDBOX_QUEUE_TIMEOUT',
    fallback: 10,
    unit: 'seconds',
    description: 'How long a start or resume waits for room before it is refused. 0 refuses at once.',
  }),
  slotPoolSize: setting({
    kind: integer(0, 1000),
    key: 'network.slot_pool_size',
    env: 'AENV_NETWORK_SLOT_POOL_SIZE',
    fallback: 4,
    unit: 'slots',
    description: 'Network slots kept ready, so that a start does not wait for one to be made.',
  }),
  poolSize: setting({
    kind: integer(0, 1000),
    key: 'pool.size',
    env: 'AENV_POOL_SIZE',
    fallback: 2,
    unit: 'virtual machines',
    description:
      'Restored virtual machines kept waiting for each template in use, so that a start takes milliseconds. 0 keeps none, as do machines with less than 4 GiB of memory or one processor.',
  }),
  poolMaxIdle: setting({
    kind: integer(1, 86_400),
    key: 'pool.max_idle',
    env: 'AENV_POOL_MAX_IDLE',
    fallback: 600,
    unit: 'seconds',
    description: 'How long after its last start a template is in use.',
  }),
  accelerator: setting({
    kind: choice(['auto', 'kvm', 'tcg']),
    key: 'vmm.accelerator',
    env: 'AENV_VMM_ACCELERATOR',
    fallback: 'auto',
    description:
      'How virtual processors run: `kvm` in hardware, `tcg` in software (slower, works everywhere). `auto` boots a tiny guest once to see whether KVM really works here.',
  }),
  kernelDirectory: setting({
    kind: optionalPath,
    key: 'vmm.kernel_directory',
    env: 'AENV_VMM_KERNEL_DIRECTORY',
    fallback: '',
    description:
      'Directory of the guest kernel and its modules, as `tools/fetch-kernel.sh` makes it. Empty: the one in the checkout.',
  }),
} as const;

export type SettingName = keyof typeof SETTINGS;

export type Config = {
  -readonly [Name in SettingName]: (typeof SETTINGS)[Name] extends Setting<infer T> ? T : never;
};

/** Names a TOML file for `--config` and AENV_CONFIG; read when it exists and neither is given. */
export const DEFAULT_CONFIG_FILE = '/etc/aenv/aenv.toml';

/** `template.cpu_count` → `template-cpu-count`. */
export function flagName(setting: { key: string }): string {
  return setting.key.replaceAll(/[._]/g, '-');
}
