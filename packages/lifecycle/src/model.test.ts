/** 100 000 random steps of sandboxes through the reducer, against a model of the machine below them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { answer, due, isSettled, OPERATIONS, type Operation, outcome, recover, type SandboxPhase } from './index.ts';

const RUNS = 1_000;
const STEPS = 100;

/** What there really is. A sandbox must never be without both, and never have two versions of its state. */
interface World {
  phase: SandboxPhase | 'gone';
  alive: boolean;
  saved: boolean;
  /** Somebody has been told that it exists. */
  promised: boolean;
  /** Somebody wants it gone. */
  unwanted: boolean;
}

type Step =
  | { kind: 'operation'; operation: Operation }
  | { kind: 'end'; succeeded: boolean }
  | { kind: 'timeout'; onTimeout: 'kill' | 'pause' }
  | { kind: 'crash' };

const steps = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('operation' as const), operation: fc.constantFrom(...OPERATIONS) }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('end' as const), succeeded: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('timeout' as const),
      onTimeout: fc.constantFrom('kill' as const, 'pause' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('crash' as const) }) },
);

function fresh(): World {
  return { phase: 'starting', alive: false, saved: false, promised: false, unwanted: false };
}

/** What the end of a phase does to the machine. */
function settle(world: World, succeeded: boolean): void {
  const { phase } = world;
  if (phase === 'gone' || isSettled(phase)) return;
  world.phase = outcome(phase, succeeded);
  if (phase === 'starting' && succeeded) Object.assign(world, { alive: true, promised: true });
  if (phase === 'pausing') Object.assign(world, succeeded ? { alive: false, saved: true } : { saved: false });
  if (phase === 'resuming' && succeeded) Object.assign(world, { alive: true, saved: false });
  if (world.phase === 'gone') Object.assign(world, { alive: false, saved: false });
}

function begin(world: World, operation: Operation): void {
  const { phase } = world;
  if (phase === 'gone') return;
  const reply = answer(phase, operation);
  if (reply.kind === 'wait' || reply.kind === 'join') assert.ok(!isSettled(phase), `${operation} waits for nothing`);
  if (operation === 'kill') assert.notEqual(reply.kind, 'refuse');
  if (reply.kind !== 'begin') return;
  assert.ok(isSettled(phase), `two operations at once: ${operation} while ${phase}`);
  world.phase = reply.phase;
  if (operation === 'kill') world.unwanted = true;
}

function crash(world: World): void {
  const { phase, alive, saved } = world;
  if (phase === 'gone') return;
  const decision = recover({ phase, alive, saved });
  if (decision.kind === 'remove') {
    assert.ok(!world.promised || world.unwanted, `${phase}: a promised sandbox is thrown away`);
    Object.assign(world, { phase: 'gone', alive: false, saved: false });
  } else if (decision.kind === 'adopt') {
    assert.ok(alive, 'adopts what is not there');
    Object.assign(world, { phase: 'running', saved: false });
  } else {
    assert.ok(saved, 'keeps a pause that is not there');
    Object.assign(world, { phase: 'paused', alive: false });
  }
}

function take(world: World, step: Step): void {
  if (step.kind === 'operation') begin(world, step.operation);
  else if (step.kind === 'end') settle(world, step.succeeded);
  else if (step.kind === 'crash') crash(world);
  else if (world.phase !== 'gone') {
    const action = due({ phase: world.phase, endAt: 0, onTimeout: step.onTimeout }, 1);
    if (action) begin(world, action);
  }
}

function check({ phase, alive, saved }: World): void {
  if (phase === 'running') assert.ok(alive && !saved, 'running without a VM, or with a state to fall back to');
  if (phase === 'paused') assert.ok(!alive && saved, 'paused without a saved state, or with a VM beside it');
  if (phase === 'gone') assert.ok(!alive && !saved, 'something of a sandbox that is gone is left');
}

test(`${RUNS * STEPS} steps: nothing is lost, stuck or left, whatever fails and whenever the server dies`, () => {
  fc.assert(
    fc.property(fc.array(steps, { minLength: STEPS, maxLength: STEPS }), (list) => {
      let world = fresh();
      for (const step of list) {
        if (world.phase === 'gone') world = fresh();
        take(world, step);
        check(world);
      }
      // No state lacks an exit.
      for (let turn = 0; turn < 3 && world.phase !== 'gone'; turn += 1) {
        settle(world, true);
        begin(world, 'kill');
      }
      settle(world, true);
      assert.equal(world.phase, 'gone');
    }),
    { numRuns: RUNS },
  );
});
