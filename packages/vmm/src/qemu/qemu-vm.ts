/** A running QEMU process as a Vm. */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Launcher, MemoryDump, VmExit } from '@aenv/linux';
import { AenvError, sleep } from '@aenv/std';
import type { Vm, VmEnd, VmRecord } from '../driver.ts';
import { diskNode, diskNodeName, layerNode } from './disk.ts';
import { mergeInto } from './disk-merge.ts';
import { describeEnd, readLog } from './exits.ts';
import { type Accelerator, CONSOLE_LOG } from './machine.ts';
import type { QmpClient } from './qmp.ts';
import { asRecord } from './qmp-lines.ts';
import { encodeState, readStateFile } from './state-file.ts';

const SAVE_TIMEOUT_MS = 30_000;
/** How long the report of an exit may lag behind the end of the process. */
const EXIT_REPORT_MS = 5000;

export interface QemuVmParts {
  launcher: Launcher;
  accel: Accelerator;
  record: VmRecord;
  /** How the guest's RAM maps its file; decides which kind of state can be saved. */
  memory: 'shared' | 'private';
  qmp: QmpClient;
  exit: Promise<VmExit>;
}

export class QemuVm implements Vm {
  readonly ended: Promise<VmEnd>;
  readonly #parts: QemuVmParts;
  #record: VmRecord;
  #killRequested = false;

  constructor(parts: QemuVmParts) {
    this.#record = parts.record;
    this.#parts = parts;
    this.ended = parts.exit.then(async (exit) => {
      parts.qmp.close();
      const log = await readLog(join(parts.record.directory, CONSOLE_LOG));
      return describeEnd(exit, this.#killRequested, log);
    });
  }

  get record(): VmRecord {
    return this.#record;
  }

  async stop(): Promise<void> {
    await this.#parts.qmp.execute('stop');
  }

  async resume(): Promise<void> {
    await this.#parts.qmp.execute('cont');
  }

  async saveTemplate(stateFile: string): Promise<void> {
    if (this.#parts.memory !== 'shared')
      throw new Error(`the VM ${this.record.id} has private memory: it is no template`);
    await this.#saving(async () => this.#keepState(await this.#saveDevices(), stateFile), [stateFile]);
  }

  async savePause(stateFile: string, memoryDiff: string, onRead?: () => void): Promise<MemoryDump> {
    if (this.#parts.memory !== 'private') throw new Error(`the VM ${this.record.id} has shared memory: it has no base`);
    const save = async () => {
      // Saving the devices may still write to guest RAM, so the RAM comes second.
      const own = await this.#saveDevices();
      const kept = this.#keepState(own, stateFile);
      const dumped = this.#parts.launcher.dumpMemory(this.record.id, this.record.memoryFile, memoryDiff, onRead);
      // Both have ended before files of a failed one are removed.
      await Promise.allSettled([kept, dumped]);
      await kept;
      return dumped;
    };
    return this.#saving(save, [stateFile, memoryDiff]);
  }

  async addLayer(layer: string): Promise<void> {
    await this.#parts.launcher.giveFile(this.record.id, layer);
    await this.#parts.qmp.execute('blockdev-add', { ...diskNode(layer, layerNode(layer)), backing: null });
  }

  async sealDisk(layer: string): Promise<void> {
    await this.#requireStopped();
    const { qmp } = this.#parts;
    const node = await diskNodeName(qmp);
    try {
      await qmp.execute('blockdev-snapshot', { node, overlay: layerNode(layer) });
    } catch (error) {
      // What counts is where the guest's writes go, not whether the answer arrived.
      if ((await diskNodeName(qmp)) !== layerNode(layer)) throw error;
    }
    this.#record = { ...this.record, diskFile: layer };
  }

  async removeLayer(layer: string): Promise<void> {
    await this.#parts.qmp.execute('blockdev-del', { 'node-name': layerNode(layer) });
  }

  async mergeDisk(base: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await mergeInto(this.#parts.qmp, await diskNodeName(this.#parts.qmp), base, signal);
  }

  async kill(graceMs: number): Promise<void> {
    this.#killRequested = true;
    await this.#parts.launcher.killVm(this.record.id, graceMs);
    await Promise.race([this.ended, sleep(EXIT_REPORT_MS)]);
  }

  async #saving<T>(save: () => Promise<T>, files: string[]): Promise<T> {
    try {
      await this.#requireStopped();
      return await save();
    } catch (error) {
      await Promise.allSettled(files.map((file) => rm(file, { force: true })));
      const reason = AenvError.from(error, 'snapshot_failed');
      if (reason.code === 'disk_full') throw reason;
      throw new AenvError('snapshot_failed', `the state of the VM could not be saved: ${reason.message}`, {
        cause: error,
      });
    }
  }

  async #requireStopped(): Promise<void> {
    const status = asRecord(await this.#parts.qmp.execute('query-status'));
    if (status?.running !== false) throw new Error(`the VM ${this.record.id} runs while its state is to be saved`);
  }

  /**
   * Returns the file that QEMU wrote, in the VM's own directory: it may write nowhere else. The command is meant for Xen,
   * where others save the RAM, and works everywhere. `live: false` keeps the disk open, so that the VM can run on.
   */
  async #saveDevices(): Promise<string> {
    const own = join(this.record.directory, 'outgoing.state');
    await rm(own, { force: true });
    await this.#parts.qmp.execute('xen-save-devices-state', { filename: own, live: false }, SAVE_TIMEOUT_MS);
    return own;
  }

  /** The copy belongs to us. */
  async #keepState(own: string, stateFile: string): Promise<void> {
    try {
      const origin = { accel: this.#parts.accel, qemu: this.#parts.qmp.version };
      await writeFile(stateFile, encodeState(await readStateFile(own), origin), { mode: 0o600 });
    } finally {
      await rm(own, { force: true });
    }
  }
}
