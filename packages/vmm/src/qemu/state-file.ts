/**
 * A device state as we store it: QEMU's stream, then JSON that says who wrote it, the length of the JSON (u32, little
 * endian) and a magic number. QEMU's stream knows its own end, so the file is given to QEMU as it is.
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { AenvError } from '@aenv/std';
import type { Accelerator } from './machine.ts';
import { asRecord } from './qmp-lines.ts';

const MAGIC = Buffer.from('AENVDEV1', 'latin1');
const TRAILER_BYTES = 4 + MAGIC.length;
/** A microVM's devices need 20 to 100 KiB. */
const MAX_STATE_BYTES = 16 << 20;

export interface StateOrigin {
  accel: Accelerator;
  /** Version of QEMU. */
  qemu: string;
}

export function encodeState(stream: Uint8Array, origin: StateOrigin): Buffer {
  const json = Buffer.from(JSON.stringify(origin));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(json.length);
  return Buffer.concat([stream, json, length, MAGIC]);
}

/** Who wrote the state; `restore_failed` when it is not a complete one. */
export function stateOrigin(state: Buffer): StateOrigin {
  const refuse = () => new AenvError('restore_failed', 'the saved device state is damaged or incomplete');
  const end = state.length - TRAILER_BYTES;
  if (end < 0 || !state.subarray(end + 4).equals(MAGIC)) throw refuse();
  const start = end - state.readUInt32LE(end);
  if (start < 0) throw refuse();
  try {
    const value = asRecord(JSON.parse(state.toString('utf8', start, end)));
    if (value && (value.accel === 'kvm' || value.accel === 'tcg') && typeof value.qemu === 'string') {
      return { accel: value.accel, qemu: value.qemu };
    }
  } catch {
    // Not JSON: damaged.
  }
  throw refuse();
}

/** Reads a file that an untrusted process wrote: no link is followed, and it may not be larger than a state can be. */
export async function readStateFile(path: string): Promise<Buffer> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const stat = await file.stat();
  if (!stat.isFile() || stat.size > MAX_STATE_BYTES) throw new Error(`${path} is not a device state`);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(stat.size), 0, stat.size, 0);
  return buffer.subarray(0, bytesRead);
}
