import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildBase, Harness, SETTINGS } from './testing/harness.ts';

const REQUEST = { ...SETTINGS, template: 'base', timeoutSeconds: 3600 };
const SWEPT_MS = 300;
const swept = () => new Promise((resolve) => setTimeout(resolve, SWEPT_MS));

test('a sandbox that nobody uses is paused, when a request would wake it', async () => {
  await using harness = await Harness.create();
  harness.pauseIdleSeconds = 60;
  const orchestrator = await harness.start();
  await buildBase(orchestrator);
  const idle = await orchestrator.createSandbox({ ...REQUEST, autoResume: true });
  const stays = await orchestrator.createSandbox({ ...REQUEST, autoResume: false });
  const used = await orchestrator.createSandbox({ ...REQUEST, autoResume: true });
  const busy = await orchestrator.createSandbox({ ...REQUEST, autoResume: true });
  harness.quiet.set(used.id, undefined);
  const busyPid = [...harness.host.vms.values()].find(({ record }) => record.id.startsWith(busy.id))?.record.pid ?? 0;
  await swept();
  harness.clock.advance(61_000);
  harness.cpuMs.set(busyPid, 10_000);
  await swept();
  const stateOf = ({ id }: { id: string }) => orchestrator.getSandbox(id).state;
  assert.deepEqual([idle, stays, used, busy].map(stateOf), ['paused', 'running', 'running', 'running']);

  // The use ends; from then on the time counts anew.
  harness.quiet.set(used.id, harness.clock.now());
  await swept();
  harness.clock.advance(30_000);
  await swept();
  assert.equal(stateOf(used), 'running');
  harness.clock.advance(31_000);
  await swept();
  assert.deepEqual([used, busy].map(stateOf), ['paused', 'paused']);
  await orchestrator.close();
});

test('without a time nothing is paused for being idle', async () => {
  await using harness = await Harness.create();
  const orchestrator = await harness.start();
  await buildBase(orchestrator);
  const { id } = await orchestrator.createSandbox({ ...REQUEST, autoResume: true });
  await swept();
  harness.clock.advance(3_000_000);
  await swept();
  assert.equal(orchestrator.getSandbox(id).state, 'running');
  await orchestrator.close();
});
