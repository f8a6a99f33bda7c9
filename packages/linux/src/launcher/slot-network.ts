/** Makes and removes the namespace, links and rules of a slot with as few processes as possible. */
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { AenvError } from '@aenv/std';
import {
  FIRST_SLOT_UID,
  GATEWAY_MAC,
  GUEST_ADDRESS,
  GUEST_GATEWAY,
  GUEST_MAC,
  GUEST_PREFIX,
  slotAddresses,
} from '../addresses.ts';
import { findProgram, mustRun, runCommand } from '../commands.ts';
import type { EgressPolicy, Slot } from '../launcher-api.ts';
import { HOST_TABLE, namespaceTable, policyUpdate } from './slot-rules.ts';

export function slotOf(index: number): Slot {
  return {
    index,
    namespace: `aenv-${index}`,
    tap: 'tap0',
    hostAddress: slotAddresses(index).slot,
    uid: FIRST_SLOT_UID + index,
  };
}

/** Where `ip netns` keeps the handle of a namespace. */
export const namespacePath = (index: number): string => `/run/netns/aenv-${index}`;

const hostLink = (index: number): string => `av${index}`;

/**
 * $1: ip commands for the host, $2: path of the namespace, $3: ip commands for the namespace, $4: rules for nft.
 * IPv6 is off before the first link is up.
 */
const CREATE_SCRIPT = `
printf %s "$1" | ip -batch - || exit 1
exec nsenter --net="$2" -- /bin/sh -c '
echo 1 > /proc/sys/net/ipv4/ip_forward || exit 1
for scope in all default; do
  [ ! -e /proc/sys/net/ipv6/conf/$scope ] || echo 1 > /proc/sys/net/ipv6/conf/$scope/disable_ipv6 || exit 1
done
printf %s "$1" | ip -batch - || exit 1
exec nft "$2"
' aenv-slot "$3" "$4"`;

function hostCommands(index: number): string {
  const { host } = slotAddresses(index);
  const link = hostLink(index);
  return `netns add aenv-${index}
link add ${link} type veth peer name uplink netns aenv-${index}
addr add ${host}/30 dev ${link}
`;
}

/** The neighbour entry is fixed: no ARP before the first reply after a restore, and no other answer to it. */
function namespaceCommands(index: number): string {
  const { host, slot } = slotAddresses(index);
  return `link set lo up
tuntap add dev tap0 mode tap user ${FIRST_SLOT_UID + index}
link set tap0 address ${GATEWAY_MAC} up
addr add ${GUEST_GATEWAY}/${GUEST_PREFIX} dev tap0
neigh add ${GUEST_ADDRESS} lladdr ${GUEST_MAC} dev tap0 nud permanent
addr add ${slot}/30 dev uplink
link set uplink up
route add default via ${host}
`;
}

/** Builds the network of a slot; on failure the caller removes what is there. */
export async function createNetwork(index: number, policy: EgressPolicy, resolvers: string[]): Promise<void> {
  for (const program of ['ip', 'nsenter', 'nft']) findProgram(program);
  // A launcher that was killed may have left a script that finished its work after the slot had been given up.
  if (isThere(index)) await removeNetwork(index);
  await mustRun('sh', [
    '-c',
    CREATE_SCRIPT,
    'aenv-slot',
    hostCommands(index),
    namespacePath(index),
    namespaceCommands(index),
    namespaceTable(index, policy, resolvers),
  ]);
  await disableIpv6(hostLink(index));
  await mustRun('ip', ['link', 'set', hostLink(index), 'up']);
}

async function disableIpv6(link: string): Promise<void> {
  const path = `/proc/sys/net/ipv6/conf/${link}/disable_ipv6`;
  if (existsSync(path)) await writeFile(path, '1');
}

/** Removes links and namespace; what is gone already does not matter. */
export async function removeNetwork(index: number): Promise<void> {
  const link = hostLink(index);
  // The link first and by itself: the kernel empties namespaces later, and its name would stay taken until then.
  await runCommand('ip', ['-force', '-batch', '-'], { stdin: `link del ${link}\nnetns del aenv-${index}\n` });
  if (isThere(index)) {
    throw new AenvError('internal', `the network of slot ${index} could not be removed`, {
      remedy: `Look at: ip netns pids aenv-${index}; ip link show ${link}`,
    });
  }
}

function isThere(index: number): boolean {
  return existsSync(namespacePath(index)) || existsSync(`/sys/class/net/${hostLink(index)}`);
}

export async function applyPolicy(index: number, policy: EgressPolicy, resolvers: string[]): Promise<void> {
  await mustRun('nsenter', [
    `--net=${namespacePath(index)}`,
    '--',
    findProgram('nft'),
    policyUpdate(policy, resolvers),
  ]);
}

/** Puts the host's table in place and lets the host forward packets. */
export async function installHostTable(): Promise<void> {
  await mustRun('nft', [HOST_TABLE]);
  const forwarding = '/proc/sys/net/ipv4/ip_forward';
  if ((await readFile(forwarding, 'utf8')).trim() === '0') await writeFile(forwarding, '1');
}

export async function removeHostTable(): Promise<void> {
  await runCommand('nft', ['delete', 'table', 'inet', 'aenv']);
}
