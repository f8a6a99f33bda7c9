/** A launcher that is always there: connects again, and starts another one, when the one in use goes away. */
import { AenvError, sleep } from '@aenv/std';
import type { ConnectedLauncher } from './client.ts';
import type { JobOptions, JobRequest, Launcher, VmExit, VmProcess } from './launcher-api.ts';
import { type EnsureOptions, startOrConnect } from './start-launcher.ts';

const RETRY_MS = 1000;

/**
 * The launcher of an AENV_HOME; started in the background when none runs. When it dies, a start, a job or a dump that was
 * under way fails; everything else waits for the next launcher. VMs that ended meanwhile are reported like any other.
 */
export async function ensureLauncher(options: EnsureOptions): Promise<Launcher> {
  const launcher = new LastingLauncher(options);
  await launcher.open();
  return launcher;
}

class LastingLauncher implements Launcher {
  readonly #options: EnsureOptions;
  readonly #listeners = new Set<(exit: VmExit) => void>();
  /** VMs that are believed to run. */
  readonly #vms = new Map<string, VmProcess>();
  readonly #closing = new AbortController();
  #connection: Promise<ConnectedLauncher> | undefined;

  constructor(options: EnsureOptions) {
    this.#options = options;
  }

  async open(): Promise<void> {
    await this.#connected();
  }

  createSlot: Launcher['createSlot'] = async (...args) => (await this.#connected()).createSlot(...args);
  setPolicy: Launcher['setPolicy'] = (...args) => this.#repeatable((to) => to.setPolicy(...args));
  destroySlot: Launcher['destroySlot'] = (...args) => this.#repeatable((to) => to.destroySlot(...args));
  listSlots: Launcher['listSlots'] = () => this.#repeatable((to) => to.listSlots());
  killVm: Launcher['killVm'] = (...args) => this.#repeatable((to) => to.killVm(...args));
  listVms: Launcher['listVms'] = () => this.#repeatable((to) => to.listVms());
  giveFile: Launcher['giveFile'] = (...args) => this.#repeatable((to) => to.giveFile(...args));
  dumpMemory: Launcher['dumpMemory'] = async (...args) => (await this.#connected()).dumpMemory(...args);
  patchMemory: Launcher['patchMemory'] = async (...args) => (await this.#connected()).patchMemory(...args);
  leftovers: Launcher['leftovers'] = (...args) => this.#repeatable((to) => to.leftovers(...args));
  seal: Launcher['seal'] = (...args) => this.#repeatable((to) => to.seal(...args));

  spawnVm: Launcher['spawnVm'] = async (request) => {
    const vm = await (await this.#connected()).spawnVm(request);
    this.#vms.set(vm.id, vm);
    return vm;
  };

  async run(request: JobRequest, options?: JobOptions) {
    return (await this.#connected()).run(request, options);
  }

  onVmExit(listener: (exit: VmExit) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.#closing.abort(new AenvError('shutting_down', 'the connection to the launcher was closed'));
    const connection = await this.#connection?.catch(() => undefined);
    await connection?.close();
  }

  /** Carries out what does no harm when it is done twice: once more when the launcher went away meanwhile. */
  async #repeatable<T>(work: (connection: ConnectedLauncher) => Promise<T>): Promise<T> {
    const connection = await this.#connected();
    try {
      return await work(connection);
    } catch (error) {
      if (!connection.isLost || this.#closing.signal.aborted) throw error;
      await connection.closed;
      return work(await this.#connected());
    }
  }

  /** One connection for all; an attempt that failed is made again by the next caller. */
  #connected(): Promise<ConnectedLauncher> {
    if (this.#closing.signal.aborted) return Promise.reject(this.#closing.signal.reason);
    if (!this.#connection) {
      const attempt = this.#connect();
      this.#connection = attempt;
      attempt.catch(() => {
        if (this.#connection === attempt) this.#connection = undefined;
      });
    }
    return this.#connection;
  }

  async #connect(): Promise<ConnectedLauncher> {
    const connection = await startOrConnect(this.#options);
    connection.onVmExit((exit) => this.#ended(exit));
    void connection.closed.then(() => this.#lost());
    const running = new Map((await connection.listVms()).map((vm) => [vm.id, vm]));
    for (const { id, pid } of this.#vms.values()) {
      if (running.get(id)?.pid !== pid) this.#ended({ id, pid, code: null, signal: null, oom: false });
    }
    for (const vm of running.values()) this.#vms.set(vm.id, vm);
    return connection;
  }

  /** Connects again without being asked: exits must be heard of. */
  async #lost(): Promise<void> {
    this.#connection = undefined;
    const { logger } = this.#options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      logger.warn({}, 'the launcher is gone; connecting to another one');
      try {
        await this.#connected();
        return;
      } catch (error) {
        logger.error({ err: error }, 'no launcher');
        await sleep(RETRY_MS, signal).catch(() => {});
      }
    }
  }

  #ended(exit: VmExit): void {
    if (this.#vms.get(exit.id)?.pid === exit.pid) this.#vms.delete(exit.id);
    for (const listener of this.#listeners) listener(exit);
  }
}
