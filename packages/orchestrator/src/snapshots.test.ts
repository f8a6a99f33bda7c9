import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { buildBase, Harness, SETTINGS } from './testing/harness.ts';

const codeOf = (code: string) => (error: { code?: string }) => error.code === code;

async function running() {
  const harness = await Harness.create();
  const orchestrator = await harness.start();
  await buildBase(orchestrator);
  const { id } = await orchestrator.createSandbox({ ...SETTINGS, template: 'base', metadata: { of: 'parent' } });
  const vmOf = (sandbox: string) => {
    const found = [...harness.host.vms.values()].find(({ record }) => record.id.startsWith(`${sandbox}-`));
    if (!found) throw new Error(`sandbox ${sandbox} has no VM`);
    return found;
  };
  return { harness, orchestrator, id, vmOf };
}

describe('snapshots', () => {
  test('a snapshot starts like a template, by id, name and tag, also without its source', async () => {
    const { harness, orchestrator, id, vmOf } = await running();
    await using _ = harness;
    vmOf(id).value = 7;
    const unnamed = await orchestrator.createSnapshot(id);
    assert.equal(unnamed.id, `${unnamed.templateId}:default`);
    const named = await orchestrator.createSnapshot(id, { name: 'work:v1' });
    assert.deepEqual([named.id, named.names], ['work:v1', ['work:v1']]);
    vmOf(id).value = 8;
    assert.equal(vmOf(id).running, true, 'the source goes on');
    const second = await orchestrator.createSnapshot(id, { name: 'work:v2' });
    assert.equal(second.templateId, named.templateId);
    await orchestrator.killSandbox(id);
    const expected: [string, number][] = [
      [unnamed.id, 7],
      [unnamed.templateId, 7],
      ['work:v1', 7],
      ['work:v2', 8],
    ];
    for (const [template, value] of expected) {
      const sandbox = await orchestrator.createSandbox({ ...SETTINGS, template });
      assert.equal(vmOf(sandbox.id).value, value, template);
      // A snapshot of a sandbox from a snapshot stands on the same memory.
      vmOf(sandbox.id).value += 10;
      const third = await orchestrator.createSnapshot(sandbox.id);
      const again = await orchestrator.createSandbox({ ...SETTINGS, template: third.id });
      assert.equal(vmOf(again.id).value, value + 10);
      for (const gone of [sandbox, again]) await orchestrator.killSandbox(gone.id);
    }
    assert.equal(orchestrator.listSnapshots({}).length, 7);
    assert.deepEqual(
      orchestrator.listSnapshots({ sandboxId: id, name: 'work' }).map((view) => view.id),
      ['work:v2', 'work:v1'],
    );
    assert.deepEqual(orchestrator.listSnapshots({ name: 'nothing' }), []);
    assert.deepEqual(
      orchestrator.listTemplates().map(({ names }) => names),
      [['base']],
    );
    await assert.rejects(orchestrator.deleteTemplate('base'), codeOf('template_in_use'));
    for (const templateId of new Set(orchestrator.listSnapshots({}).map((view) => view.templateId))) {
      await orchestrator.deleteTemplate(templateId);
    }
    await orchestrator.deleteTemplate('base');
    await harness.assertNothingLeft();
    await orchestrator.close();
  });

  test('a snapshot outlives a restart of the server, and keeps what it stands on', async () => {
    const { harness, orchestrator, id, vmOf } = await running();
    await using _ = harness;
    vmOf(id).value = 5;
    const { id: snapshot } = await orchestrator.createSnapshot(id);
    vmOf(id).value = 6;
    await orchestrator.close();
    const next = await harness.start();
    assert.equal(vmOf(id).value, 6, 'the source was adopted');
    await next.pauseSandbox(id);
    await next.resumeSandbox(id, 60);
    assert.equal(vmOf(id).value, 6);
    await next.killSandbox(id);
    const sandbox = await next.createSandbox({ ...SETTINGS, template: snapshot });
    assert.equal(vmOf(sandbox.id).value, 5);
    await assert.rejects(next.deleteTemplate(snapshot), codeOf('template_in_use'));
    await next.close();
  });

  test('what cannot be copied is refused with the reason', async () => {
    const { harness, orchestrator, id } = await running();
    await using _ = harness;
    await assert.rejects(orchestrator.createSnapshot('inothing'), codeOf('sandbox_not_found'));
    await assert.rejects(orchestrator.createSnapshot(id, { name: 'base' }), codeOf('conflict'));
    await assert.rejects(orchestrator.createSnapshot(id, { name: '../x' }), codeOf('bad_request'));
    for (const count of [0, 101, 1.5]) {
      await assert.rejects(orchestrator.forkSandbox(id, { count, timeoutSeconds: 60 }), codeOf('bad_request'));
    }
    await orchestrator.pauseSandbox(id);
    await assert.rejects(orchestrator.createSnapshot(id), codeOf('sandbox_paused'));
    await assert.rejects(orchestrator.forkSandbox(id, { count: 1, timeoutSeconds: 60 }), codeOf('sandbox_paused'));
    assert.deepEqual(orchestrator.listSnapshots({}), []);
    const [failed] = orchestrator.listSnapshots({ states: ['failed'] });
    assert.match(failed?.reason ?? '', /paused/);
    await orchestrator.close();
  });
});

describe('forks', () => {
  test('children have the state of their parent, and an identity and a future of their own', async () => {
    const { harness, orchestrator, id, vmOf } = await running();
    await using _ = harness;
    vmOf(id).value = 3;
    const results = await orchestrator.forkSandbox(id, { count: 5, timeoutSeconds: 120 });
    const children = results.map((result) => ('sandbox' in result ? result.sandbox : assert.fail(result.error)));
    assert.equal(new Set([id, ...children.map((child) => child.id)]).size, 6);
    for (const child of children) {
      assert.equal(vmOf(child.id).value, 3);
      assert.deepEqual(child.metadata, { of: 'parent' });
    }
    const [first, second] = children;
    assert.ok(first && second);
    vmOf(first.id).value = 4;
    assert.equal(vmOf(second.id).value, 3);
    // They live without their parent, and can do all that it could.
    await orchestrator.killSandbox(id);
    await orchestrator.pauseSandbox(first.id);
    await orchestrator.resumeSandbox(first.id, 60);
    assert.equal(vmOf(first.id).value, 4);
    const [grandchild] = await orchestrator.forkSandbox(first.id, { count: 1, timeoutSeconds: 60 });
    assert.equal(vmOf(grandchild && 'sandbox' in grandchild ? grandchild.sandbox.id : '').value, 4);
    for (const view of orchestrator.listSandboxes({})) await orchestrator.killSandbox(view.id);
    await harness.assertNothingLeft();
    await orchestrator.close();
  });
});

test('a disk of too many layers is refused with the limit, and the sandbox goes on', async () => {
  const { harness, orchestrator, id } = await running();
  await using _ = harness;
  harness.host.merging = 'fail';
  let taken = 0;
  const takeAll = async () => {
    for (;;) {
      await orchestrator.createSnapshot(id);
      taken += 1;
      assert.ok(taken < 300);
    }
  };
  await assert.rejects(takeAll(), /consists of 200 layers, the most there may be/);
  assert.ok(taken > 190, `${taken}`);
  await orchestrator.pauseSandbox(id);
  await orchestrator.resumeSandbox(id, 60);
  await orchestrator.close();
});

describe('a snapshot that failed', () => {
  test('is never replaced by an older one in silence', async () => {
    const { harness, orchestrator, id, vmOf } = await running();
    await using _ = harness;
    vmOf(id).value = 1;
    assert.equal((await orchestrator.createSnapshot(id, { name: 'work' })).durable, true);
    vmOf(id).value = 2;
    harness.host.failSaves = true;
    await assert.rejects(orchestrator.createSnapshot(id, { name: 'work' }), codeOf('snapshot_failed'));
    harness.host.failSaves = false;
    const request = { ...SETTINGS, template: 'work' };
    await assert.rejects(orchestrator.createSandbox(request), /newest snapshot 'work' failed: no space.* older/);
    await assert.rejects(orchestrator.rollbackSandbox(id, 'work', false), codeOf('conflict'));
    const older = await orchestrator.createSandbox({ ...request, allowOlder: true });
    assert.equal(vmOf(older.id).value, 1);
    await orchestrator.rollbackSandbox(id, 'work', true);
    assert.equal(vmOf(id).value, 1);
    assert.deepEqual(
      orchestrator.listSnapshots({ states: ['failed', 'ready'] }).map(({ state, durable }) => [state, durable]),
      [
        ['failed', false],
        ['ready', true],
      ],
    );
    await orchestrator.createSnapshot(id, { name: 'work' });
    await orchestrator.createSandbox(request);
    await orchestrator.close();
  });
});

describe('lineage', () => {
  test('shows who came from whom, the dead included, and what only one of them has', async () => {
    const { harness, orchestrator, id } = await running();
    await using _ = harness;
    const snapshot = await orchestrator.createSnapshot(id, { name: 'work' });
    const [fork] = await orchestrator.forkSandbox(id, { count: 1, timeoutSeconds: 60 });
    const forkId = fork && 'sandbox' in fork ? fork.sandbox.id : '';
    const child = await orchestrator.createSandbox({ ...SETTINGS, template: 'work' });
    await orchestrator.createSandbox({ ...SETTINGS, template: 'base' });
    await orchestrator.killSandbox(id);
    const nodes = await orchestrator.lineage(child.id);
    const names = new Map(nodes.map((node) => [node.id, node.name]));
    assert.deepEqual(
      nodes.map(({ kind, name, parentId }) => [kind, name, names.get(parentId ?? '')]),
      [
        ['template', 'base:default', undefined],
        ['sandbox', id, 'base:default'],
        ...nodes.slice(2).map(({ kind, name }) => [kind, name, name === child.id ? 'work:default' : id]),
      ],
    );
    assert.deepEqual(
      nodes
        .slice(2)
        .map(({ name }) => name)
        .sort(),
      ['work:default', forkId, child.id].sort(),
    );
    assert.equal(nodes[1]?.state, 'ended (killed)');
    assert.deepEqual(await orchestrator.lineage(snapshot.id), nodes);
    await assert.rejects(orchestrator.lineage('i0'), codeOf('template_not_found'));
    await orchestrator.close();
  });
});

describe('rollbacks', () => {
  test('the sandbox is again what it was, under the same id', async () => {
    const { harness, orchestrator, id, vmOf } = await running();
    await using _ = harness;
    vmOf(id).value = 1;
    const snapshot = await orchestrator.createSnapshot(id);
    vmOf(id).value = 2;
    harness.cut.splice(0);
    assert.equal((await orchestrator.rollbackSandbox(id, snapshot.id, false)).id, id);
    assert.equal(vmOf(id).value, 1);
    assert.deepEqual(harness.cut, [id], 'connections to what was there are cut');
    assert.equal(harness.host.vms.size, 1);
    await orchestrator.pauseSandbox(id);
    await orchestrator.resumeSandbox(id, 60);
    assert.equal(vmOf(id).value, 1);
    await assert.rejects(orchestrator.rollbackSandbox(id, 'base', false), codeOf('conflict'));
    await assert.rejects(orchestrator.rollbackSandbox(id, 'nothing', false), codeOf('template_not_found'));
    await orchestrator.killSandbox(id);
    await orchestrator.deleteTemplate(snapshot.id);
    await harness.assertNothingLeft();
    await orchestrator.close();
  });
});
