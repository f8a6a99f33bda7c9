/** Bodies, queries and paths made from the contract's own schemas, right and nearly right, against every operation. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type OperationId, operationInfo } from '@aenv/protocol';
import fc from 'fast-check';
import { type JsonSchema, nearlyValid, valid } from './testing/arbitrary.ts';
import { type Harness, newHarness, SERVED } from './testing/harness.ts';

const RUNS = 60;

/** Lists as the contract writes them, everything else as it comes. */
function textual(query: unknown): Record<string, string> {
  const write = (value: unknown) => {
    if (Array.isArray(value)) return value.map((item) => JSON.stringify(item).replaceAll('"', '')).join(',');
    return typeof value === 'string' ? value : JSON.stringify(value);
  };
  return Object.fromEntries(Object.entries(query as object).map(([name, value]) => [name, write(value) ?? '']));
}

/** Ids of things that exist, so that requests get past the first look-up about as often as not. */
function paths(harness: Harness): fc.Arbitrary<Record<string, string>> {
  const template = harness.engine.getTemplate('base');
  const sandboxes = harness.engine.listSandboxes({}).map((sandbox) => sandbox.id);
  return fc.record({
    sandboxID: fc.oneof(fc.constantFrom(...sandboxes), fc.string({ unit: 'binary', maxLength: 50 })),
    templateID: fc.oneof(fc.constantFrom('base', template.id), fc.string({ maxLength: 50 })),
    buildID: fc.oneof(fc.constantFrom(template.build.id), fc.uuid(), fc.string()),
    alias: fc.oneof(fc.constant('base'), fc.string({ maxLength: 50 })),
  });
}

async function populated(): Promise<Harness> {
  const harness = newHarness();
  harness.template();
  for (let n = 0; n < 3; n++)
    await harness.call('createSandboxV2', { body: { templateID: 'base', metadata: { a: '1' } } });
  return harness;
}

for (const id of SERVED) {
  const { body, query } = operationInfo(id) as { body?: JsonSchema; query?: JsonSchema };
  if (body === undefined && query === undefined && !operationInfo(id).path.includes('{')) continue;

  test(`${id}: whatever it is sent, it answers within the contract, and never with 5xx`, async () => {
    await using harness = await populated();
    const bodies = body === undefined ? fc.constant(undefined) : realistic(nearlyValid(body));
    const queries = query === undefined ? fc.constant({}) : fc.oneof(nearlyValid(query), valid(query));
    const property = fc.asyncProperty(paths(harness), bodies, queries, async (params, payload, given) => {
      const answer = await harness.call(id, { params, query: textual(given ?? {}), ...send(payload) });
      assert.ok(answer.status < 500, JSON.stringify(answer.body));
    });
    await fc.assert(property, { numRuns: RUNS });
  });
}

/** Often without what is refused in any case, and naming a template that exists: so that some get all the way through. */
function realistic(bodies: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const refused = ['autoPauseMemory', 'network', 'mcp', 'iam', 'volumeMounts', 'memory', 'steps', 'fromTemplate'];
  return fc.tuple(bodies, fc.boolean()).map(([body, served]) => {
    if (!served || typeof body !== 'object' || body === null || Array.isArray(body)) return body;
    const kept = Object.entries(body).filter(([name]) => !refused.includes(name));
    return { ...Object.fromEntries(kept), ...('templateID' in body ? { templateID: 'base' } : {}) };
  });
}

/** JSON by hand: a body that is a string or null is not what inject would send. */
function send(payload: unknown): { body?: unknown; headers?: Record<string, string> } {
  if (payload === undefined) return {};
  return { body: JSON.stringify(payload), headers: { 'content-type': 'application/json' } };
}

/** What a valid body may meet: it is served, refused as unsupported, or fails for a reason that is not its shape. */
const SHAPE_ERRORS: OperationId[] = ['createSandbox', 'createSandboxV2', 'createColdSandbox', 'pauseSandbox'];

for (const id of SHAPE_ERRORS) {
  test(`${id}: no body that the contract allows is called malformed`, async () => {
    await using harness = await populated();
    const [params] = harness.engine.listSandboxes({}).map((sandbox) => ({ sandboxID: sandbox.id }));
    const schema = operationInfo(id).body as JsonSchema;
    const property = fc.asyncProperty(valid(schema), async (body) => {
      const answer = await harness.call(id, { params, ...send(body) });
      const tooLong = /longest timeout|username and a password/.test(answer.body?.message);
      assert.ok(answer.body?.error_code !== 'bad_request' || tooLong, JSON.stringify(answer.body));
    });
    await fc.assert(property, { numRuns: RUNS });
  });
}
