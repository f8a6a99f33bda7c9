/** Kernel objects with our names that no launcher owns any more: what a launcher left that was killed in between. */
import { existsSync, readdirSync } from 'node:fs';
import { SLOT_COUNT } from '../addresses.ts';
import type { Leftover } from '../launcher-api.ts';
import type { Cgroups } from './cgroups.ts';
import { SLOT_DIRECTORY } from './paths.ts';
import { removeNetwork } from './slot-network.ts';

const NAMESPACES = '/run/netns';

interface Found extends Leftover {
  remove(): Promise<void>;
}

/** Network namespaces and empty cgroups without a slot file; `vms` are the cgroups of VMs that run. */
export async function findLeftovers(cgroups: Cgroups, vms: ReadonlySet<string>): Promise<Found[]> {
  const groups = (await cgroups.emptyOnes()).filter((name) => !vms.has(name) && !hasSlot(slotOfCgroup(name)));
  return [
    ...abandonedNamespaces().map((index) => ({
      kind: 'namespace' as const,
      name: `aenv-${index}`,
      remove: () => removeNetwork(index),
    })),
    ...groups.map((name) => ({ kind: 'cgroup' as const, name, remove: () => cgroups.remove(name) })),
  ];
}

function abandonedNamespaces(): number[] {
  if (!existsSync(NAMESPACES)) return [];
  return readdirSync(NAMESPACES)
    .map((name) => Number(/^aenv-(\d{1,5})$/.exec(name)?.[1] ?? Number.NaN))
    .filter((index) => index < SLOT_COUNT && !hasSlot(index));
}

/** Another launcher's VM that is about to start has an empty cgroup too, but it has a slot. */
function slotOfCgroup(name: string): number {
  return Number(/^(\d{1,5})-/.exec(name)?.[1] ?? Number.NaN);
}

function hasSlot(index: number): boolean {
  return Number.isNaN(index) || existsSync(`${SLOT_DIRECTORY}/${index}.json`);
}
