/**
 * Sandboxes over a fake host, with a server whose calls on the host fail and which dies and starts again, in random order.
 * Whatever was promised is there with the memory that it had last; in the end nothing is left.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/std';
import fc from 'fast-check';
import type { Orchestrator } from './orchestrator.ts';
import { Connection } from './testing/fake-host.ts';
import { buildBase, Harness, SETTINGS } from './testing/harness.ts';

const RUNS = Number(process.env.AENV_MODEL_RUNS ?? 300);

const OPERATIONS = [
  'create', 'write', 'pause', 'connect', 'snapshot', 'fork', 'rollback', 'kill', 'pause disk', 'snapshot disk', 'reboot',
] as const; // biome-ignore format: a list of words
type Name = (typeof OPERATIONS)[number];

const operation = fc.record({ name: fc.constantFrom<Name>(...OPERATIONS), which: fc.nat(3) });
/** A life of one server: what it is asked for, and which of its calls on the host goes wrong in which way. */
const lives = fc.record({
  operations: fc.array(operation, { maxLength: 20 }),
  fault: fc.record({
    at: fc.integer({ min: 1, max: 80 }),
    how: fc.constantFrom('fail' as const, 'die_before' as const, 'die_after' as const),
  }),
});

class Client {
  /** What each promised sandbox has in its memory; several values while a rollback has not been answered. */
  readonly memory = new Map<string, Set<number>>();
  /** What each snapshot that is ready has. */
  readonly snapshots = new Map<string, number>();
  /** Asked to go. */
  readonly unwanted = new Set<string>();
  readonly #harness: Harness;
  #next = 1;

  constructor(harness: Harness) {
    this.#harness = harness;
  }

  async perform(orchestrator: Orchestrator, { name, which }: { name: Name; which: number }): Promise<void> {
    const ids = [...this.memory.keys()].filter((id) => !this.unwanted.has(id));
    const id = ids[which % Math.max(1, ids.length)];
    if (name === 'create') {
      const { id: made } = await orchestrator.createSandbox({ ...SETTINGS, template: 'base' });
      this.memory.set(made, new Set([0]));
    } else if (id !== undefined) {
      await this.#onOne(orchestrator, name, id, which);
    }
  }

  async #onOne(orchestrator: Orchestrator, name: Name, id: string, which: number): Promise<void> {
    const values = this.memory.get(id) ?? new Set();
    if (name === 'write') this.#write(id);
    else if (name === 'pause') await orchestrator.pauseSandbox(id);
    else if (name === 'connect') await orchestrator.connectSandbox(id, 300);
    else if (name === 'pause disk' || name === 'reboot') {
      // From then on it may have booted, and a guest that boots remembers nothing.
      values.add(0);
      if (name === 'reboot') await orchestrator.connectSandbox(id, 300, { memory: false });
      else await orchestrator.pauseSandbox(id, { memory: false });
    } else if (name === 'snapshot disk') {
      this.snapshots.set((await orchestrator.createSnapshot(id, { memory: false })).id, 0);
    } else if (name === 'kill') {
      this.unwanted.add(id);
      await orchestrator.killSandbox(id);
    } else if (name === 'snapshot') {
      const snapshot = await orchestrator.createSnapshot(id);
      this.snapshots.set(snapshot.id, this.valueOf(id) ?? -1);
    } else if (name === 'fork') {
      for (const result of await orchestrator.forkSandbox(id, { count: 1, timeoutSeconds: 300 })) {
        if ('sandbox' in result) this.memory.set(result.sandbox.id, new Set([this.valueOf(id) ?? -1]));
      }
    } else {
      const [snapshot, value] = [...this.snapshots][which % Math.max(1, this.snapshots.size)] ?? [];
      if (snapshot === undefined || value === undefined) return;
      values.add(value);
      await orchestrator.rollbackSandbox(id, snapshot, false);
      this.memory.set(id, new Set([value]));
    }
  }

  /** What the VM of the sandbox has in its memory. */
  valueOf(id: string): number | undefined {
    return this.#vm(id)?.value;
  }

  #write(id: string): void {
    const vm = this.#vm(id);
    if (!vm?.running) return;
    vm.value = this.#next;
    this.#next += 1;
    this.memory.set(id, new Set([vm.value]));
  }

  #vm(id: string) {
    return [...this.#harness.host.vms.values()].find(({ record }) => record.id.startsWith(`${id}-`));
  }
}

async function assertKept(client: Client, orchestrator: Orchestrator): Promise<void> {
  for (const [id, values] of client.memory) {
    if (client.unwanted.has(id)) continue;
    await orchestrator.connectSandbox(id, 300);
    const value = client.valueOf(id);
    assert.ok(value !== undefined && values.has(value), `${id} has ${value} in its memory, not one of ${[...values]}`);
    client.memory.set(id, new Set([value]));
  }
  for (const [snapshot, value] of client.snapshots) {
    const { id } = await orchestrator.createSandbox({ ...SETTINGS, template: snapshot });
    assert.equal(client.valueOf(id), value, 'a snapshot has another memory');
    await orchestrator.killSandbox(id);
  }
}

test('a server that fails and dies at random loses nothing that it has promised, and leaves nothing', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(lives, { minLength: 1, maxLength: 4 }), async (list) => {
      await using harness = await Harness.create();
      // A dead server must not keep the process waiting.
      harness.launchTimeoutSeconds = 1;
      await buildBase(await harness.start());
      const client = new Client(harness);
      for (const { operations, fault } of list) {
        const quiet = new Connection(harness.host);
        const start = await harness.start(quiet);
        await start.close();
        const connection = new Connection(harness.host, { ...fault, at: quiet.calls + fault.at });
        const orchestrator = await Promise.race([harness.start(connection), connection.died]);
        for (const step of orchestrator ? operations : []) {
          const refused = (error: unknown) => assert.ok(error instanceof AenvError, String(error));
          await Promise.race([client.perform(orchestrator as Orchestrator, step).catch(refused), connection.died]);
        }
        connection.die();
      }
      const last = await harness.start();
      await assertKept(client, last);
      for (const { id } of last.listSandboxes({})) await last.killSandbox(id);
      for (const { id } of last.listSnapshots({ states: ['ready', 'failed', 'creating'] }))
        await last.deleteTemplate(id);
      await last.close();
      await harness.assertNothingLeft();
      assert.equal(harness.host.slots.size, 0, 'slots are left');
    }),
    { numRuns: RUNS },
  );
});
