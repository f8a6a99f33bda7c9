/**
 * The nftables rules, as text for `nft`. Only numbers and addresses that this file's callers have computed or parsed go
 * into them. docs/host.md explains them to the administrator.
 */
import { GUEST_ADDRESS, GUEST_GATEWAY, SLOT_NETWORK, slotAddresses } from '../addresses.ts';
import type { EgressPolicy } from '../launcher-api.ts';

/** Private, shared, link-local, loopback, test, multicast and reserved ranges: never reachable from a guest. */
const REFUSED_RANGES = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
];

/** Rules of the namespace's chain `egress`, which every packet of a connection that the guest opened passes. */
function egressRules(policy: EgressPolicy, resolvers: string[]): string[] {
  if (!policy.internet) return ['reject with icmp admin-prohibited'];
  const dns =
    resolvers.length > 0 ? [`ip daddr { ${resolvers.join(', ')} } meta l4proto { tcp, udp } th dport 53 accept`] : [];
  return [...dns, `ip daddr { ${REFUSED_RANGES.join(', ')} } reject with icmp admin-prohibited`, 'accept'];
}

/**
 * The table inside the namespace of slot `index`. Whether a packet from the guest is an answer or a request of its own
 * is told by the direction of its connection, so that a stricter policy also ends what is already open.
 */
export function namespaceTable(index: number, policy: EgressPolicy, resolvers: string[]): string {
  return `table ip aenv {
  chain egress {
    ${egressRules(policy, resolvers).join('\n    ')}
  }
  chain forward {
    type filter hook forward priority filter; policy drop;
    ct state invalid drop
    iifname "tap0" ip saddr != ${GUEST_ADDRESS} drop
    iifname "uplink" oifname "tap0" ct state established,related accept
    iifname "uplink" oifname "tap0" ct status dnat accept
    iifname "tap0" oifname "uplink" ct direction reply accept
    iifname "tap0" oifname "uplink" jump egress
  }
  chain input {
    type filter hook input priority filter; policy drop;
    iifname "lo" accept
    iifname "tap0" ip saddr ${GUEST_ADDRESS} ip daddr ${GUEST_GATEWAY} icmp type echo-request accept
  }
  chain prerouting {
    type nat hook prerouting priority dstnat;
    iifname "uplink" ip daddr ${slotAddresses(index).slot} meta l4proto { tcp, udp } dnat to ${GUEST_ADDRESS}
  }
  chain postrouting {
    type nat hook postrouting priority srcnat;
    oifname "uplink" masquerade
  }
}
`;
}

/** Replaces the policy of a slot in one transaction. */
export function policyUpdate(policy: EgressPolicy, resolvers: string[]): string {
  const rules = egressRules(policy, resolvers).map((rule) => `add rule ip aenv egress ${rule}\n`);
  return `flush chain ip aenv egress\n${rules.join('')}`;
}

/** The table on the host, shared by all servers of the machine; replaces an earlier one in one transaction. */
export const HOST_TABLE = `table inet aenv
delete table inet aenv
table inet aenv {
  chain input {
    type filter hook input priority filter; policy accept;
    iifname "av*" ct state established,related accept
    iifname "av*" drop
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    iifname "av*" oifname "av*" drop
    iifname "av*" meta nfproto ipv6 drop
    oifname "av*" ct state established,related accept
    oifname "av*" drop
  }
  chain postrouting {
    type nat hook postrouting priority srcnat;
    ip saddr ${SLOT_NETWORK} oifname != "av*" masquerade
  }
}
`;
