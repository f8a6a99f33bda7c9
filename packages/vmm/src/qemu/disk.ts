/** The guest's one disk as QEMU's block graph: a qcow2 node for each layer that was added since the start. */
import { basename, dirname, join } from 'node:path';
import { AenvError } from '@aenv/std';
import type { QmpClient } from './qmp.ts';
import { asRecord } from './qmp-lines.ts';

/** Name of the node that the VM is started with; its file is known from the record. */
export const FIRST_NODE = 'disk';

/** The node of a layer that is added while the VM runs; `layers/ID.qcow2` becomes ID. */
export const layerNode = (layer: string): string => basename(layer, '.qcow2');

/**
 * no-flush: a running sandbox does not survive its host anyway, so a guest's fsync need not reach the platter. Stopping the
 * processors writes QEMU's own caches to the file.
 */
export function diskNode(filename: string, name: string): Record<string, unknown> {
  const cache = { direct: false, 'no-flush': true };
  return {
    driver: 'qcow2',
    'node-name': name,
    discard: 'unmap',
    cache,
    file: { driver: 'file', filename, discard: 'unmap', cache },
  };
}

/** The node that the guest writes to. */
export async function diskNodeName(qmp: QmpClient): Promise<string> {
  const devices = (await qmp.execute('query-block')) as unknown;
  const names = Array.isArray(devices)
    ? devices.map((device) => asRecord(asRecord(device)?.inserted)?.['node-name']).filter((name) => name !== undefined)
    : [];
  if (names.length === 1 && typeof names[0] === 'string') return names[0];
  throw new AenvError('vmm_failed', `QEMU names ${names.length} disks instead of one`);
}

/** The file that the guest writes to, for a VM that was started with `firstFile`: all layers lie in one directory. */
export async function diskFileOf(qmp: QmpClient, firstFile: string): Promise<string> {
  const name = await diskNodeName(qmp);
  return name === FIRST_NODE ? firstFile : join(dirname(firstFile), `${name}.qcow2`);
}
