/**
 * The addresses of a slot. Inside, they are the same for every sandbox, because a snapshot carries them: the same as
 * E2B's guests have. Outside, each slot has a /30 of its own.
 */

export const GUEST_ADDRESS = '169.254.0.21';
export const GUEST_GATEWAY = '169.254.0.22';
export const GUEST_PREFIX = 30;
/** Locally administered; all guests share it, each alone in its namespace. */
export const GUEST_MAC = '02:fc:00:00:00:05';
/** Of every tap: a snapshot carries the guest's ARP cache, so the gateway must look the same in each slot. */
export const GATEWAY_MAC = '02:fc:00:00:00:06';
/** Port of `aenvd` in the guest, as E2B's SDKs expect it. */
export const AENVD_PORT = 49983;

/** 10.11.0.0/16 holds 16,384 blocks of four addresses. */
export const SLOT_COUNT = 16_384;
export const SLOT_NETWORK = '10.11.0.0/16';
/** Slot users are numbers without an account: FIRST_SLOT_UID + index. */
export const FIRST_SLOT_UID = 2_000_000;
/** User of jobs that parse what comes from outside (images); owns `$AENV_HOME/images`. */
export const JOB_UID = 1_999_999;

export interface SlotAddresses {
  /** Host end of the veth pair. */
  host: string;
  /** Namespace end; the host reaches the guest through it. */
  slot: string;
  prefix: 30;
}

/** Addresses of the veth pair of slot `index` (0 … SLOT_COUNT - 1). */
export function slotAddresses(index: number): SlotAddresses {
  const base = index * 4;
  const prefix = `10.11.${base >> 8}.`;
  return { host: `${prefix}${(base & 255) + 1}`, slot: `${prefix}${(base & 255) + 2}`, prefix: 30 };
}
