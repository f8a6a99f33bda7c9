/** Network slots: whose they are, which are free, and what a crash left behind. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { AenvError, isSystemError, KeyedMutex, type Logger, pollUntil, Singleflight, writeFileAtomic } from '@aenv/std';
import { SLOT_COUNT } from '../addresses.ts';
import type { EgressPolicy, Slot } from '../launcher-api.ts';
import { isAlive, type ProcessIdentity, processesInNamespace, sendSignal } from '../processes.ts';
import { hostResolvers } from '../resolvers.ts';
import { SLOT_DIRECTORY } from './paths.ts';
import {
  applyPolicy,
  createNetwork,
  installHostTable,
  namespacePath,
  removeHostTable,
  removeNetwork,
  slotOf,
} from './slot-network.ts';

interface SlotFile {
  home: string;
  owner: ProcessIdentity;
  /** Whether the network stands; before, nobody has been told of the slot. */
  complete: boolean;
}

const fileOf = (index: number): string => `${SLOT_DIRECTORY}/${index}.json`;

export interface SlotStoreOptions {
  home: string;
  /** This launcher. */
  owner: ProcessIdentity;
  logger: Logger;
}

export class SlotStore {
  readonly #home: string;
  readonly #owner: ProcessIdentity;
  readonly #logger: Logger;
  readonly #mine = new Set<number>();
  readonly #locks = new KeyedMutex();
  readonly #table = new Singleflight<void>();
  #tableInstalled = false;
  #next = 0;

  constructor({ home, owner, logger }: SlotStoreOptions) {
    this.#home = home;
    this.#owner = owner;
    this.#logger = logger;
  }

  /**
   * Takes over the slots of this home, also those without a VM: the server may be about to start one there. Removes half
   * made ones, and those of dead launchers of other homes with no process inside.
   */
  async recover(): Promise<void> {
    for (const index of readIndexes()) {
      const file = readSlotFile(index);
      if (file?.home === this.#home && file.complete) {
        await this.#markComplete(index);
      } else if (this.#isAbandoned(index, file)) {
        await this.#remove(index);
        this.#logger.info({ slot: index, home: file?.home }, 'slot of a dead launcher removed');
      }
    }
  }

  async create(policy: EgressPolicy): Promise<Slot> {
    const index = await this.#claim();
    try {
      await this.#ensureTable();
      await createNetwork(index, policy, hostResolvers());
    } catch (error) {
      await this.#remove(index).catch((reason) => this.#logger.error({ err: reason }, 'half a slot was left behind'));
      throw error;
    }
    await this.#markComplete(index);
    return slotOf(index);
  }

  async setPolicy(index: number, policy: EgressPolicy): Promise<void> {
    this.get(index);
    await this.exclusive(index, () => applyPolicy(index, policy, hostResolvers()));
  }

  /** Ends what still runs in the namespace and removes the slot. No error when this home has no such slot. */
  async destroy(index: number): Promise<void> {
    if (!this.#mine.has(index)) return;
    await this.#remove(index);
    this.#mine.delete(index);
    await this.#removeTableIfLast();
  }

  list(): Slot[] {
    return [...this.#mine].map(slotOf);
  }

  /** A slot of this home; `not_found` otherwise. */
  get(index: number): Slot {
    if (!this.#mine.has(index)) throw new AenvError('not_found', `there is no slot ${index} of this server`);
    return slotOf(index);
  }

  /** Work on one slot, one at a time. */
  exclusive<T>(index: number, work: () => Promise<T>): Promise<T> {
    return this.#locks.run(String(index), work);
  }

  #fileContent(complete: boolean): string {
    return JSON.stringify({ home: this.#home, owner: this.#owner, complete } satisfies SlotFile);
  }

  /** In one step: a launcher that dies here must not leave a slot of which nobody knows whose it is. */
  async #markComplete(index: number): Promise<void> {
    await writeFileAtomic(fileOf(index), this.#fileContent(true), { mode: 0o644, durable: false });
    this.#mine.add(index);
  }

  /** Indexes go round, so that an address is not reused at once by somebody whom an old connection does not expect. */
  async #claim(): Promise<number> {
    for (let tries = 0; tries < SLOT_COUNT; tries += 1) {
      const index = this.#next;
      this.#next = (this.#next + 1) % SLOT_COUNT;
      if (await this.#tryClaim(index)) return index;
    }
    throw new AenvError('capacity_exhausted', 'every network slot of this machine is in use');
  }

  async #tryClaim(index: number): Promise<boolean> {
    try {
      await writeFile(fileOf(index), this.#fileContent(false), { flag: 'wx', mode: 0o644 });
      return true;
    } catch (error) {
      if (isSystemError(error, 'EEXIST')) return false;
      throw AenvError.from(error);
    }
  }

  async #remove(index: number): Promise<void> {
    await endProcesses(index);
    await removeNetwork(index);
    await rm(fileOf(index), { force: true });
  }

  #isAbandoned(index: number, file: SlotFile | undefined): boolean {
    if (file?.home === this.#home) return true;
    if (file && isAlive(file.owner)) return false;
    return processesInNamespace(namespacePath(index)).length === 0;
  }

  /** Another launcher removes the table only while no slot file exists, so it stays as long as we hold a slot. */
  async #ensureTable(): Promise<void> {
    if (this.#tableInstalled && this.#mine.size > 0) return;
    await this.#table.run('table', installHostTable);
    this.#tableInstalled = true;
  }

  async #removeTableIfLast(): Promise<void> {
    if (readIndexes().length > 0) return;
    this.#tableInstalled = false;
    await this.#table.run('remove', removeHostTable);
    // Somebody may have claimed a slot between the two steps, and relied on the table.
    if (readIndexes().length > 0) await this.#ensureTable();
  }
}

function readIndexes(): number[] {
  return readdirSync(SLOT_DIRECTORY)
    .map((name) => Number(/^(\d{1,5})\.json$/.exec(name)?.[1] ?? Number.NaN))
    .filter((index) => index < SLOT_COUNT);
}

/** Undefined for a file that a crash left empty. */
function readSlotFile(index: number): SlotFile | undefined {
  try {
    return JSON.parse(readFileSync(fileOf(index), 'utf8')) as SlotFile;
  } catch {
    return undefined;
  }
}

async function endProcesses(index: number): Promise<void> {
  const path = namespacePath(index);
  if (!existsSync(path)) return;
  await pollUntil(
    `the end of the processes in slot ${index}`,
    () => {
      const pids = processesInNamespace(path);
      for (const pid of pids) sendSignal(pid, 'SIGKILL');
      return pids.length === 0 ? true : undefined;
    },
    { intervalMs: 10, timeoutMs: 5000 },
  );
}
