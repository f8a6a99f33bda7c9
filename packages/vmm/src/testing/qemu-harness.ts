/** A real host for tests of the QEMU driver: launcher, kernel, slots, disks. Everything is gone after `close`. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ensureLauncher, type Launcher, lookUpProgram } from '@aenv/linux';
import { pollUntil, silentLogger } from '@aenv/std';
import type { BootRequest, Vm, VmmDriver } from '../driver.ts';
import { initramfs } from '../initramfs.ts';
import { CONSOLE_LOG } from '../qemu/machine.ts';
import { createQemuDriver, type QemuVmmDriver } from '../qemu/qemu-driver.ts';
import type { VmmHarness } from './contract.ts';
import { countingProgram } from './guests.ts';

/** Where tools/setup.sh puts it. */
const KERNEL = resolve(import.meta.dirname, '../../../../.cache/kernel/vmlinuz');

/** Why real VMs cannot be run here; undefined when they can. */
export function missingForQemu(): string | undefined {
  if (process.geteuid?.() !== 0) return 'needs root';
  const absent = ['qemu-system-x86_64', 'qemu-img', 'ip', 'nft', 'nsenter', 'setpriv'].find(
    (name) => !lookUpProgram(name),
  );
  if (absent) return `needs the program ${absent}`;
  return existsSync(KERNEL) ? undefined : `needs a guest kernel: tools/fetch-kernel.sh (${KERNEL})`;
}

export class QemuHarness implements VmmHarness {
  readonly directory: string;
  launcher: Launcher;
  driver: QemuVmmDriver;

  private constructor(directory: string, launcher: Launcher) {
    this.directory = directory;
    this.launcher = launcher;
    this.driver = createQemuDriver({ launcher, accel: 'tcg', logger: silentLogger });
  }

  static async open(): Promise<QemuHarness> {
    const home = await mkdtemp(join(tmpdir(), 'aenv-vmm-'));
    await chmod(home, 0o711);
    const harness = new QemuHarness(home, await ensureLauncher({ home, logger: silentLogger }));
    await copyFile(KERNEL, join(home, 'vmlinuz'));
    await chmod(join(home, 'vmlinuz'), 0o444);
    return harness;
  }

  async bootRequest(id: string, init: Buffer = countingProgram()): Promise<BootRequest> {
    const diskFile = join(this.directory, `${id}.qcow2`);
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', diskFile, '16M']);
    const image = join(this.directory, `${id}.initramfs`);
    await writeFile(image, initramfs(init, []));
    await chmod(image, 0o444);
    const directory = join(this.directory, 'vms', id);
    await rm(directory, { recursive: true, force: true });
    await mkdir(directory, { recursive: true, mode: 0o711 });
    return {
      id,
      slot: await this.launcher.createSlot({ internet: false }),
      resources: { cpus: 1, memoryMb: 128 },
      directory,
      memoryFile: join(this.directory, `${id}.memory`),
      diskFile,
      kernel: join(this.directory, 'vmlinuz'),
      initramfs: image,
      kernelArguments: [],
      memory: 'shared',
    };
  }

  async layer(id: string, base: string): Promise<string> {
    const path = join(this.directory, `${id}.qcow2`);
    execFileSync('qemu-img', ['create', '-q', '-u', '-f', 'qcow2', '-b', base, '-F', 'qcow2', path, '16M']);
    return path;
  }

  async blank(path: string, memoryMb: number): Promise<void> {
    await writeFile(path, '', { mode: 0o444 });
    await truncate(path, memoryMb * 2 ** 20);
  }

  async seal(path: string): Promise<void> {
    await this.launcher.seal(path);
  }

  async console(vm: Vm): Promise<string> {
    return readFile(join(vm.record.directory, CONSOLE_LOG), 'utf8');
  }

  /** A restore may begin in the middle of a line, so only whole lines count. */
  async counts(vm: Vm): Promise<number[]> {
    return [...(await this.console(vm)).matchAll(/^count (\d{10})\r?\n/gm)].map(([, digits]) => Number(digits));
  }

  async crash(vm: Vm): Promise<void> {
    process.kill(vm.record.pid, 'SIGSEGV');
  }

  async restart(): Promise<VmmDriver> {
    this.driver.disconnect();
    await this.launcher.close();
    this.launcher = await ensureLauncher({ home: this.directory, logger: silentLogger });
    this.driver = createQemuDriver({ launcher: this.launcher, accel: 'tcg', logger: silentLogger });
    return this.driver;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { id } of await this.launcher.listVms()) await this.launcher.killVm(id, 0);
    for (const { index } of await this.launcher.listSlots()) await this.launcher.destroySlot(index);
    this.driver.disconnect();
    await this.launcher.close();
    await pollUntil('removing the files', () => removed(this.directory), { intervalMs: 50, timeoutMs: 5000 });
  }
}

/** The launcher may write its log once more while it ends. */
async function removed(directory: string): Promise<true | undefined> {
  await rm(directory, { recursive: true, force: true }).catch(() => {});
  return existsSync(directory) ? undefined : true;
}
