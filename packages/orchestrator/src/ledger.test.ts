import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { OperationView } from './engine.ts';
import { Connection } from './testing/fake-host.ts';
import { buildBase, Harness, SETTINGS, until } from './testing/harness.ts';

const short = ({ kind, phase, state, generation }: OperationView) => `${kind} ${generation} ${phase} ${state}`;

describe('the ledger of operations', () => {
  test('has every long operation of a sandbox with its number, its last phase and its end', async () => {
    await using harness = await Harness.create();
    const orchestrator = await harness.start();
    await buildBase(orchestrator);
    const { id } = await orchestrator.createSandbox({ ...SETTINGS, template: 'base' });
    await orchestrator.createSnapshot(id);
    await orchestrator.pauseSandbox(id);
    await orchestrator.resumeSandbox(id, 300);
    await orchestrator.killSandbox(id);
    assert.deepEqual(orchestrator.listOperations({ sandboxId: id }).map(short), [
      'kill 5 killing succeeded',
      'resume 4 resuming succeeded',
      'pause 3 pausing succeeded',
      'snapshot 2 publishing succeeded',
      'start 1 starting succeeded',
    ]);
    assert.deepEqual(orchestrator.listOperations({ states: ['running', 'failed'] }), []);
    await orchestrator.close();
  });

  test('has what is under way, and what an earlier server did not end', async () => {
    await using harness = await Harness.create();
    const connection = new Connection(harness.host);
    const orchestrator = await harness.start(connection);
    await buildBase(orchestrator);
    harness.host.restoring = Promise.withResolvers();
    void orchestrator.createSandbox({ ...SETTINGS, template: 'base' }).catch(() => {});
    await until(() => orchestrator.listOperations({ states: ['running'] }).length === 1);
    const next = await harness.start();
    const [first] = next.listOperations({});
    assert.equal(first && short(first), 'start 1 starting interrupted');
    assert.match(first?.error?.message ?? '', /the server ended/);
    harness.host.restoring.resolve();
    harness.host.restoring = undefined;
    await next.close();
  });
});

describe('a VM that comes up too late', () => {
  test('is ended, and the sandbox is paused as before and can be resumed', async () => {
    await using harness = await Harness.create();
    const orchestrator = await harness.start();
    await buildBase(orchestrator);
    await orchestrator.close();
    harness.launchTimeoutSeconds = 0.05;
    const slow = await harness.start();
    const { id } = await slow.createSandbox({ ...SETTINGS, template: 'base' });
    for (const vm of harness.host.vms.values()) vm.value = 7;
    await slow.pauseSandbox(id);
    const gate = Promise.withResolvers<void>();
    harness.host.restoring = gate;
    await assert.rejects(slow.resumeSandbox(id, 300), /did not finish within 50 ms/);
    assert.equal(slow.getSandbox(id).state, 'paused');
    assert.equal(slow.listOperations({ states: ['failed'] })[0]?.error?.code, 'timeout');
    harness.host.restoring = undefined;
    await slow.resumeSandbox(id, 300);
    // The one that was late comes up now.
    const { started } = harness.host;
    gate.resolve();
    await until(() => harness.host.started === started + 1);
    await until(() => harness.host.vms.size === 1);
    assert.equal([...harness.host.vms.values()][0]?.value, 7);
    await slow.killSandbox(id);
    await harness.assertNothingLeft();
    await slow.close();
  });
});

describe('a create with a key', () => {
  const once = { key: 'k1', digest: 'd1' };
  const request = { ...SETTINGS, template: 'base' };

  test('makes one sandbox, however often and however close together it is sent', async () => {
    await using harness = await Harness.create();
    const orchestrator = await harness.start();
    await buildBase(orchestrator);
    const answers = await Promise.all([1, 2, 3].map(() => orchestrator.createSandbox(request, once)));
    await orchestrator.close();
    const next = await harness.start();
    answers.push(await next.createSandbox(request, once));
    assert.equal(new Set(answers.map(({ id }) => id)).size, 1);
    assert.equal(next.listSandboxes({}).length, 1);
    await next.close();
  });

  test('is refused with another request, and after the end of its sandbox says so', async () => {
    await using harness = await Harness.create();
    const orchestrator = await harness.start();
    await buildBase(orchestrator);
    const { id } = await orchestrator.createSandbox(request, once);
    await assert.rejects(orchestrator.createSandbox(request, { key: 'k1', digest: 'd2' }), { code: 'conflict' });
    await orchestrator.killSandbox(id);
    await assert.rejects(orchestrator.createSandbox(request, once), /it ended at .* \(killed\)/);
    harness.clock.advance(25 * 3_600_000);
    assert.notEqual((await orchestrator.createSandbox(request, once)).id, id);
    await orchestrator.close();
  });

  test('is free again when the start failed or the server died before the sandbox was promised', async () => {
    await using harness = await Harness.create();
    await buildBase(await harness.start());
    const connection = new Connection(harness.host);
    const orchestrator = await harness.start(connection);
    harness.host.restoring = Promise.withResolvers();
    void orchestrator.createSandbox(request, once).catch(() => {});
    await until(() => orchestrator.listOperations({ states: ['running'] }).length === 1);
    harness.host.restoring = undefined;
    const next = await harness.start();
    assert.equal((await next.createSandbox(request, once)).state, 'running');
    await next.close();
  });
});
