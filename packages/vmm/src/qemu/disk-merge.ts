/** Merges layers of a running VM's disk into its top one, with QEMU's `stream` job. */
import { AenvError, sleep } from '@aenv/std';
import type { QmpClient } from './qmp.ts';
import { asRecord } from './qmp-lines.ts';

const JOB = 'merge';
/** How often the job is looked at, milliseconds; one that is to end is looked at more often. */
const POLL_MS = 100;
const ENDING_POLL_MS = 2;
/** Bytes a second, so that the guest's own reads and writes get their share. */
const SPEED = 64 << 20;

/** See `Vm.mergeDisk`; `node` is the disk's. */
export async function mergeInto(qmp: QmpClient, node: string, base: string, signal: AbortSignal): Promise<void> {
  await endMerge(qmp);
  await qmp.execute('block-stream', { 'job-id': JOB, device: node, base, speed: SPEED, 'auto-dismiss': false });
  for (;;) {
    // Whoever ends it waits for that.
    await sleep(POLL_MS, signal).catch(() => {});
    if (signal.aborted) {
      await endMerge(qmp);
      throw signal.reason;
    }
    const job = await findJob(qmp);
    if (job?.status !== 'concluded') continue;
    await qmp.execute('job-dismiss', { id: JOB });
    if (job.error !== undefined) throw new AenvError('vmm_failed', `the disk could not be merged: ${job.error}`);
    break;
  }
  await closeUnused(qmp);
}

/** Ends what is left of a merge, an earlier server's too. The disk is whole at any moment. */
export async function endMerge(qmp: QmpClient): Promise<void> {
  for (let asked = false; ; await sleep(ENDING_POLL_MS)) {
    const job = await findJob(qmp);
    if (!job) return;
    if (job.status === 'concluded') {
      await qmp.execute('job-dismiss', { id: JOB });
      return;
    }
    // It may conclude before it hears of that.
    if (!asked) await qmp.execute('job-cancel', { id: JOB }).catch(() => {});
    asked = true;
  }
}

async function findJob(qmp: QmpClient): Promise<Record<string, unknown> | undefined> {
  const jobs = (await qmp.execute('query-jobs')) as unknown;
  return Array.isArray(jobs) ? jobs.map(asRecord).find((job) => job?.id === JOB) : undefined;
}

/** Closes the layers that were added one by one and that the disk does not stand on any more. */
async function closeUnused(qmp: QmpClient): Promise<void> {
  const [device] = (await qmp.execute('query-block')) as unknown as unknown[];
  const used = new Set<unknown>();
  for (
    let image = asRecord(asRecord(asRecord(device)?.inserted)?.image);
    image;
    image = asRecord(image['backing-image'])
  )
    used.add(image.filename);
  const nodes = (await qmp.execute('query-named-block-nodes', { flat: true })) as unknown as unknown[];
  for (const node of nodes.map(asRecord)) {
    const name = node?.['node-name'];
    // Nodes that QEMU named itself go with the one that they belong to.
    if (typeof name !== 'string' || name.startsWith('#') || node?.drv !== 'qcow2' || used.has(node.file)) continue;
    await qmp.execute('blockdev-del', { 'node-name': name });
  }
}
