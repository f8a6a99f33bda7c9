import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Harness, NOWHERE, newHarness } from '../testing/harness.ts';

async function start(harness: Harness, body: object = {}): Promise<string> {
  const answer = await harness.call('createSandboxV2', { body: { templateID: 'base', ...body } });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body.sandboxID;
}

const endsIn = (harness: Harness, id: string): number =>
  (harness.engine.getSandbox(id).endAt - harness.clock.now()) / 1000;

test('v1 starts for 15 seconds and not secure, v2 for 300 and always secure', async () => {
  await using harness = newHarness();
  harness.template();
  const v1 = await harness.call('createSandbox', { body: { templateID: 'base' } });
  assert.equal(v1.body.envdAccessToken, undefined);
  assert.equal(endsIn(harness, v1.body.sandboxID), 15);
  const secured = await harness.call('createSandbox', { body: { templateID: 'base', secure: true } });
  assert.equal(typeof secured.body.envdAccessToken, 'string');
  const v2 = await harness.call('createSandboxV2', { body: { templateID: 'base' } });
  assert.equal(typeof v2.body.envdAccessToken, 'string');
  assert.equal(endsIn(harness, v2.body.sandboxID), 300);
});

test('every setting reaches the engine', async () => {
  await using harness = newHarness();
  harness.template();
  await start(harness, {
    templateID: ' BASE:latest ',
    timeout: 7,
    autoPause: true,
    autoPauseMemory: false,
    autoResume: { enabled: true },
    allow_internet_access: false,
    metadata: { a: 'b' },
    envVars: { C: 'd=e' },
    somethingNew: [1],
  });
  const { lastSettings } = harness.engine.sandboxes;
  assert.deepEqual(lastSettings, {
    template: 'base:latest',
    timeoutSeconds: 7,
    onTimeout: 'pause',
    pauseMemory: false,
    autoResume: true,
    secure: true,
    allowInternetAccess: false,
    metadata: { a: 'b' },
    envVars: { C: 'd=e' },
  });
});

test('a cold start passes its image, its size and its credentials', async () => {
  await using harness = newHarness();
  const body = {
    image: 'ghcr.io/a/b:c',
    imageRegistry: { type: 'registry', username: 'u', password: 'p' },
    cpuCount: 1,
    memoryMB: 256,
    diskSizeMB: 512,
    secure: false,
  };
  const { status, body: sandbox } = await harness.call('createColdSandbox', { body });
  assert.equal(status, 201);
  assert.equal(sandbox.envdAccessToken, undefined);
  assert.deepEqual(harness.engine.sandboxes.lastSettings, {
    image: 'ghcr.io/a/b:c',
    credentials: { username: 'u', password: 'p' },
    cpuCount: 1,
    memoryMb: 256,
    diskSizeMb: 512,
    timeoutSeconds: 300,
    onTimeout: 'kill',
    pauseMemory: true,
    autoResume: false,
    secure: false,
    allowInternetAccess: true,
    metadata: {},
    envVars: {},
  });
});

/** What would be ignored silently, and the word that the message must hold. */
const REFUSED: [object, RegExp][] = [
  [{ network: { allowPublicTraffic: false } }, /allowPublicTraffic/],
  [{ network: { allowOut: ['1.1.1.1'] } }, /allowOut/],
  [{ network: { denyOut: ['0.0.0.0/0'] } }, /denyOut/],
  [{ network: { egressProxy: { address: 'a:1' } } }, /egressProxy/],
  [{ network: { maskRequestHost: 'x' } }, /maskRequestHost/],
  [{ network: { rules: { 'a.example': [] } } }, /rules/],
  [{ network: { httpsPorts: [443] } }, /httpsPorts/],
  [{ mcp: { server: {} } }, /mcp/],
  [{ iam: { tokens: {} } }, /iam/],
  [{ volumeMounts: [{ name: 'v', path: '/v' }] }, /volumeMounts/],
];

for (const [extra, word] of REFUSED) {
  test(`a sandbox that asks for ${JSON.stringify(extra)} is refused with the reason`, async () => {
    await using harness = newHarness();
    harness.template();
    for (const id of ['createSandbox', 'createSandboxV2'] as const) {
      const { status, body } = await harness.call(id, { body: { templateID: 'base', ...extra } });
      assert.equal(status, 400);
      assert.equal(body.error_code, 'unsupported');
      assert.match(body.message, word);
      assert.ok(body.remedy);
    }
    assert.equal(harness.engine.sandboxes.views.size, 0);
  });
}

test('what only spells out the defaults is accepted', async () => {
  await using harness = newHarness();
  harness.template();
  const network = { allowPublicTraffic: true, allowOut: [], denyOut: [], egressProxy: null, rules: {}, httpsPorts: [] };
  await start(harness, { network, mcp: null, iam: {}, volumeMounts: [], autoPauseMemory: true });
});

const MALFORMED: object[] = [
  {},
  { templateID: 5 },
  { templateID: '' },
  { templateID: 'a/b' },
  { templateID: 'a:b:c' },
  { templateID: 'x'.repeat(200) },
  { templateID: 'base', timeout: 0 },
  { templateID: 'base', timeout: -1 },
  { templateID: 'base', timeout: 1.5 },
  { templateID: 'base', timeout: '5' },
  { templateID: 'base', timeout: 1e300 },
  { templateID: 'base', timeout: 100_000_000 },
  { templateID: 'base', autoPause: 'yes' },
  { templateID: 'base', autoResume: true },
  { templateID: 'base', metadata: { a: 1 } },
  { templateID: 'base', metadata: ['a'] },
  { templateID: 'base', envVars: { 'A=B': 'c' } },
  { templateID: 'base', envVars: { '': 'c' } },
  { templateID: 'base', envVars: { A: 'nul\u0000' } },
];

for (const body of MALFORMED) {
  test(`a sandbox from ${JSON.stringify(body).slice(0, 60)} is a bad request`, async () => {
    await using harness = newHarness();
    harness.template();
    const answer = await harness.call('createSandboxV2', { body });
    assert.equal(answer.status, 400);
    assert.equal(answer.body.error_code, 'bad_request');
  });
}

test('an unknown template is 404, one that is not built 409', async () => {
  await using harness = newHarness();
  const unknown = await harness.call('createSandbox', { body: { templateID: 'nothing' } });
  assert.equal(unknown.body.error_code, 'template_not_found');
  harness.engine.createTemplate({ name: 'waiting', tags: [] });
  const waiting = await harness.call('createSandbox', { body: { templateID: 'waiting' } });
  assert.equal(waiting.status, 409);
});

test('ids are checked at the edge, and the older form with the client id is understood', async () => {
  await using harness = newHarness();
  harness.template();
  const id = await start(harness);
  assert.equal((await harness.call('getSandbox', { params: { sandboxID: `${id}-6532622b` } })).body.sandboxID, id);
  for (const sandboxID of ['', 'UPPER', 'a-b-c', '../x', 'a b', 'i'.repeat(99), '%00']) {
    const { status, body } = await harness.call('getSandbox', { params: { sandboxID } });
    assert.equal(status, 400, sandboxID);
    assert.equal(body.error_code, 'bad_request');
  }
  assert.equal((await harness.call('getSandbox', { params: NOWHERE })).body.error_code, 'sandbox_not_found');
});

test('pause, connect, resume and kill answer as E2B does in every state', async () => {
  await using harness = newHarness();
  harness.template();
  const params = { sandboxID: await start(harness) };
  const status = async (...args: Parameters<Harness['call']>) => (await harness.call(...args)).status;
  assert.equal(await status('connectSandboxV2', { params }), 200);
  assert.equal(await status('resumeSandbox', { params }), 409);
  assert.equal(await status('pauseSandbox', { params, body: {} }), 204);
  assert.equal(await status('pauseSandbox', { params }), 409);
  assert.equal(await status('setSandboxTimeout', { params, body: { timeout: 5 } }), 404);
  assert.equal(await status('connectSandbox', { params, body: { timeout: 5 } }), 201);
  assert.equal(await status('pauseSandbox', { params, body: { memory: true } }), 204);
  assert.equal(await status('resumeSandbox', { params }), 201);
  assert.equal(endsIn(harness, params.sandboxID), 15);
  assert.equal(await status('killSandbox', { params }), 204);
  for (const id of ['killSandbox', 'getSandbox', 'pauseSandbox', 'resumeSandbox', 'connectSandboxV2'] as const) {
    assert.equal(await status(id, { params }), 404);
  }
});

test('keeping only the disk reaches the engine from wherever it can be asked for', async () => {
  await using harness = newHarness();
  harness.template();
  const params = { sandboxID: await start(harness) };
  const { body: snapshot } = await harness.call('createSnapshot', { params, body: { memory: false } });
  assert.equal(snapshot.memory, false);
  const calls = ['pauseSandbox', 'resumeSandbox', 'connectSandbox', 'connectSandboxV2'] as const;
  for (const id of calls) await harness.call(id, { params, body: { memory: false, timeout: 5 } });
  for (const id of calls) await harness.call(id, { params, body: { timeout: 5 } });
  assert.deepEqual(harness.engine.sandboxes.memory, [false, false, false, false, true, true, true, true]);
});

test('a resume may repeat that the sandbox pauses at its timeout, but not change it', async () => {
  await using harness = newHarness();
  harness.template();
  const kills = { sandboxID: await start(harness) };
  const pauses = { sandboxID: await start(harness, { autoPause: true }) };
  for (const params of [kills, pauses]) await harness.call('pauseSandbox', { params });
  const body = { autoPause: true };
  assert.equal((await harness.call('resumeSandbox', { params: kills, body })).body.error_code, 'unsupported');
  assert.equal((await harness.call('resumeSandbox', { params: pauses, body })).status, 201);
});

test('connect and refresh only prolong, a timeout may shorten', async () => {
  await using harness = newHarness();
  harness.template();
  const sandboxID = await start(harness, { timeout: 100 });
  const params = { sandboxID };
  await harness.call('connectSandboxV2', { params, body: { timeout: 50 } });
  await harness.call('connectSandbox', { params, body: { timeout: 0 } });
  await harness.call('refreshSandbox', { params, body: { duration: 50 } });
  assert.equal(endsIn(harness, sandboxID), 100);
  await harness.call('setSandboxTimeout', { params, body: { timeout: 5 } });
  assert.equal(endsIn(harness, sandboxID), 5);
  await harness.call('refreshSandbox', { params, body: { duration: 0 } });
  assert.equal(endsIn(harness, sandboxID), 15);
  await harness.call('setSandboxTimeout', { params, body: { timeout: 0 } });
  assert.equal(endsIn(harness, sandboxID), 0);
  assert.equal((await harness.call('setSandboxTimeout', { params, body: { timeout: -1 } })).status, 400);
  assert.equal((await harness.call('refreshSandbox', { params, body: { duration: 3601 } })).status, 400);
});

test('a paused sandbox shows when it was paused, and its whole view', async () => {
  await using harness = newHarness();
  const templateID = harness.template();
  const sandboxID = await start(harness, { metadata: { a: 'b' }, autoPause: true });
  harness.clock.advance(1234);
  await harness.call('pauseSandbox', { params: { sandboxID } });
  const { body } = await harness.call('getSandbox', { params: { sandboxID } });
  assert.match(body.envdAccessToken, /./);
  assert.deepEqual(
    { ...body, envdAccessToken: '' },
    {
      templateID,
      sandboxID,
      alias: 'base',
      clientID: '6532622b',
      startedAt: '2026-01-02T03:04:05.678Z',
      endAt: '2026-01-02T03:04:06.912Z',
      cpuCount: 2,
      memoryMB: 1024,
      diskSizeMB: 2048,
      metadata: { a: 'b' },
      state: 'paused',
      envdVersion: '0.6.13',
      envdAccessToken: '',
      allowInternetAccess: true,
      domain: null,
      lifecycle: { autoResume: false, onTimeout: 'pause' },
    },
  );
});
