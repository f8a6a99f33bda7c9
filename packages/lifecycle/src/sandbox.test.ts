import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  answer,
  due,
  isSettled,
  OPERATIONS,
  outcome,
  PAUSE_LEAD_MS,
  recover,
  SANDBOX_PHASES,
  type SandboxPhase,
} from './index.ts';

const phases = fc.constantFrom(...SANDBOX_PHASES);
const operations = fc.constantFrom(...OPERATIONS);

test('kill is answered with an end of the sandbox from every phase', () => {
  for (const start of SANDBOX_PHASES) {
    let phase: SandboxPhase = start;
    for (let step = 0; step < 3; step += 1) {
      const reply = answer(phase, 'kill');
      assert.notEqual(reply.kind, 'refuse', `kill refused while ${phase}`);
      if (reply.kind === 'begin') {
        assert.equal(outcome(reply.phase, true), 'gone');
        break;
      }
      if (reply.kind === 'join') break;
      const next = outcome(phase, true);
      if (next === 'gone') break;
      phase = next;
    }
  }
});

test('an end that fails is not forgotten', () => {
  assert.equal(outcome('killing', false), 'killing');
});

test('an operation begins only in a phase that stays, and always ends in one', () => {
  fc.assert(
    fc.property(phases, operations, fc.boolean(), (phase, operation, succeeded) => {
      const reply = answer(phase, operation);
      if (reply.kind !== 'begin') return;
      assert.ok(isSettled(phase));
      assert.ok(!isSettled(reply.phase));
      const end = outcome(reply.phase, succeeded);
      assert.ok(end === 'gone' || isSettled(end) || (reply.phase === 'killing' && !succeeded));
    }),
  );
});

test('whoever waits or joins does so only while something is under way', () => {
  fc.assert(
    fc.property(phases, operations, (phase, operation) => {
      const { kind } = answer(phase, operation);
      if (kind === 'wait' || kind === 'join') assert.ok(!isSettled(phase));
    }),
  );
});

test('a failed pause leaves the sandbox running and a failed resume leaves it paused', () => {
  assert.equal(outcome('pausing', false), 'running');
  assert.equal(outcome('resuming', false), 'paused');
});

test('the timeout kills at its time and pauses just before it, and never while an operation is in progress', () => {
  fc.assert(
    fc.property(
      phases,
      fc.nat(),
      fc.nat(),
      fc.constantFrom('kill' as const, 'pause' as const),
      (phase, endAt, now, onTimeout) => {
        const dueAt = onTimeout === 'pause' ? endAt - PAUSE_LEAD_MS : endAt;
        const expected = phase === 'running' && now >= dueAt ? onTimeout : undefined;
        assert.equal(due({ phase, endAt, onTimeout }, now), expected);
      },
    ),
  );
});

test('after a crash a sandbox with a live VM or a saved state is never thrown away, unless nobody knew or wanted it', () => {
  fc.assert(
    fc.property(phases, fc.boolean(), fc.boolean(), (phase, alive, saved) => {
      const { kind } = recover({ phase, alive, saved });
      if (phase === 'starting' || phase === 'killing') assert.equal(kind, 'remove');
      else if (['running', 'capturing', 'rolling_back'].includes(phase) || (phase === 'pausing' && alive))
        assert.equal(kind, alive ? 'adopt' : 'remove');
      else assert.equal(kind, saved ? 'keep_paused' : 'remove');
    }),
  );
});
