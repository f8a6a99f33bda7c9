/** What each request does: its fields checked one by one, then the work. */
import { AenvError } from '@aenv/std';
import { SLOT_COUNT } from '../addresses.ts';
import type { Home } from '../home.ts';
import type { EgressPolicy, SpawnRequest } from '../launcher-api.ts';
import { dumpMemory } from '../memory/dump.ts';
import { patchMemory } from '../memory/patch.ts';
import type { Cgroups } from './cgroups.ts';
import { boolean, integer, number, record, text, textList, vmId } from './fields.ts';
import { planJob } from './job-tools.ts';
import type { JobRunner } from './jobs.ts';
import { findLeftovers } from './leftovers.ts';
import { qemuArgv } from './qemu-argv.ts';
import type { SlotStore } from './slots.ts';
import type { VmStore } from './vms.ts';

const MAX_STDIN = 1 << 20;
const MAX_JOB_MS = 24 * 3_600_000;
const MAX_GRACE_MS = 60_000;
/** One TiB. */
const MAX_MEMORY = 2 ** 40;

export interface Services {
  home: Home;
  cgroups: Cgroups;
  slots: SlotStore;
  vms: VmStore;
  jobs: JobRunner;
}

/** The connection's part in a request. */
export interface Call {
  /** Aborted when the client cancels the request or goes away. */
  signal: AbortSignal;
  onLine: (line: string) => void;
}

type Method = (services: Services, params: Record<string, unknown>, call: Call) => Promise<unknown> | unknown;

const METHODS: Record<string, Method> = {
  createSlot: ({ slots }, params) => slots.create(policy(params.policy)),
  setPolicy: ({ slots }, params) => slots.setPolicy(slotIndex(params.slot), policy(params.policy)),
  destroySlot: destroySlot,
  listSlots: ({ slots }) => slots.list(),
  spawnVm: ({ home, slots, vms }, params) => {
    const request = spawnRequest(params, home);
    return slots.exclusive(request.slot, async () => vms.spawn(request, slots.get(request.slot)));
  },
  killVm: ({ vms }, params) => vms.kill(vmId(params.id), integer(params.graceMs, 'graceMs', 0, MAX_GRACE_MS)),
  listVms: ({ vms }) => vms.list(),
  giveFile: ({ home, vms }, params) => vms.giveFile(vmId(params.id), home.resolve(params.path, 'path')),
  dumpMemory: ({ home, vms }, params, { onLine }) =>
    dumpMemory(home, {
      pid: vms.get(vmId(params.id)).pid,
      memoryFile: home.resolve(params.memoryFile, 'memoryFile'),
      path: home.resolve(params.file, 'file'),
      onRead: () => onLine('read'),
    }),
  patchMemory: ({ home, vms }, params) => {
    const memoryFile = home.resolve(params.memoryFile, 'memoryFile');
    return patchMemory(home, vms.get(vmId(params.id)).pid, memoryFile, home.resolve(params.file, 'file'));
  },
  leftovers: async ({ cgroups, vms }, params) => {
    const found = await findLeftovers(cgroups, vms.cgroupNames());
    if (boolean(params.remove, 'remove')) for (const { remove } of found) await remove();
    return found.map(({ kind, name }) => ({ kind, name }));
  },
  seal: ({ home }, params) => home.seal(home.resolve(params.path, 'path')),
  run: ({ home, jobs }, params, { signal, onLine }) =>
    jobs.run({
      plan: planJob(text(params.tool, 'tool', 40), params.args, home),
      stdin: params.stdin === undefined ? '' : text(params.stdin, 'stdin', MAX_STDIN),
      timeoutMs: integer(params.timeoutMs, 'timeoutMs', 1, MAX_JOB_MS),
      signal,
      onLine,
    }),
};

/** Carries a request out; rejects with an AenvError. */
export async function perform(services: Services, method: string, params: unknown, call: Call): Promise<unknown> {
  try {
    const work = Object.hasOwn(METHODS, method) ? METHODS[method] : undefined;
    if (!work) throw new AenvError('bad_request', `the launcher has no method '${method.slice(0, 40)}'`);
    return await work(services, record(params, 'params'), call);
  } catch (error) {
    throw AenvError.from(error);
  }
}

function destroySlot({ slots, vms }: Services, params: Record<string, unknown>): Promise<void> {
  const index = slotIndex(params.slot);
  return slots.exclusive(index, async () => {
    const vm = vms.inSlot(index);
    if (vm) throw new AenvError('conflict', `the VM ${vm.id} runs in slot ${index}; end it first`);
    await slots.destroy(index);
  });
}

function slotIndex(value: unknown): number {
  return integer(value, 'slot', 0, SLOT_COUNT - 1);
}

function policy(value: unknown): EgressPolicy {
  return { internet: boolean(record(value, 'policy').internet, 'policy.internet') };
}

function spawnRequest(params: Record<string, unknown>, home: Home): SpawnRequest {
  const limits = record(params.limits, 'limits');
  return {
    id: vmId(params.id),
    slot: slotIndex(params.slot),
    directory: home.resolve(params.directory, 'directory'),
    own: textList(params.own, 'own', 20, 4000).map((path, at) => home.resolve(path, `own[${at}]`)),
    argv: qemuArgv(params.argv),
    limits: {
      memoryBytes: integer(limits.memoryBytes, 'limits.memoryBytes', 1 << 20, MAX_MEMORY),
      cpus: number(limits.cpus, 'limits.cpus', 0.01, 1024),
      pids: integer(limits.pids, 'limits.pids', 1, 100_000),
    },
    logFile: home.resolve(params.logFile, 'logFile'),
  };
}
