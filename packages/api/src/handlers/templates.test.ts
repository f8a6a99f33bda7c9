import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Harness, NOWHERE, newHarness } from '../testing/harness.ts';

async function request(harness: Harness, body: object = { name: 'base' }) {
  const answer = await harness.call('requestTemplate', { body });
  assert.equal(answer.status, 202, JSON.stringify(answer.body));
  return answer.body as { templateID: string; buildID: string; tags: string[]; aliases: string[] };
}

test('a template is registered, built, listed, resolved and deleted', async () => {
  await using harness = newHarness();
  const { templateID, buildID, tags } = await request(harness, {
    name: ' Base:V1 ',
    tags: ['Stable'],
    cpuCount: 4,
    memoryMB: 512,
  });
  assert.deepEqual(tags, ['stable', 'v1']);
  const params = { templateID, buildID };
  assert.equal((await harness.call('getBuildStatus', { params })).body.status, 'waiting');
  const body = { fromImage: 'debian:12', startCmd: 'serve', readyCmd: '', steps: [], force: true, diskSizeMB: 4096 };
  assert.equal((await harness.call('startBuild', { params, body })).status, 202);
  const expected = { fromImage: 'debian:12', startCmd: 'serve', diskSizeMb: 4096 };
  assert.deepEqual(JSON.parse(JSON.stringify(harness.engine.templates.lastBuild)), expected);
  assert.equal((await harness.call('getBuildStatus', { params })).body.status, 'ready');
  assert.equal((await harness.call('startBuild', { params, body })).status, 409);
  assert.deepEqual((await harness.call('resolveAlias', { params: { alias: 'BASE' } })).body, {
    templateID,
    public: false,
  });
  const { body: template } = await harness.call('getTemplate', { params });
  assert.deepEqual(template.aliases, ['base']);
  assert.equal(template.builds[0].buildID, buildID);
  assert.equal((await harness.call('deleteTemplate', { params })).status, 204);
  assert.equal((await harness.call('deleteTemplate', { params })).status, 404);
  assert.equal((await harness.call('resolveAlias', { params: { alias: 'base' } })).status, 404);
});

test('the older word alias is a name, and one of them has to be there', async () => {
  await using harness = newHarness();
  assert.deepEqual((await request(harness, { alias: 'old' })).aliases, ['old']);
  const v2 = await harness.call('requestTemplateV2', { body: { alias: 'older', cpuCount: 1, memoryMB: 512 } });
  assert.deepEqual(v2.body.aliases, ['older']);
  for (const body of [{}, { name: '' }, { name: 'a/b' }, { name: 'a:' }, { name: ':b' }, { name: 'a', cpuCount: 0 }]) {
    const answer = await harness.call('requestTemplate', { body });
    assert.equal(answer.body.error_code, 'bad_request', JSON.stringify(body));
  }
});

test('what a build would ignore is refused', async () => {
  await using harness = newHarness();
  const params = await request(harness);
  const requests: [object, RegExp][] = [
    [{ fromImage: 'a', steps: [{ type: 'RUN', args: ['id'] }] }, /steps .*RUN/],
    [{ fromImage: 'a', fromImageRegistry: { type: 'aws', awsAccessKeyId: 'x' } }, /aws/],
    [{ fromImage: 'a', fromImageRegistry: { type: 'gcp' } }, /gcp/],
  ];
  for (const [body, word] of requests) {
    const answer = await harness.call('startBuild', { params, body });
    assert.equal(answer.body.error_code, 'unsupported');
    assert.match(answer.body.message, word);
  }
  const disk = await harness.call('requestTemplate', { body: { name: 'big', minFreeDiskMb: 100 } });
  assert.match(disk.body.message, /minFreeDiskMb/);
  assert.equal((await harness.call('requestTemplate', { body: { name: 'same', minFreeDiskMb: 0 } })).status, 202);
});

test('a build needs exactly one source, and whole credentials', async () => {
  await using harness = newHarness();
  const params = await request(harness);
  const bodies = [
    {},
    { fromImage: 'a', fromTemplate: 'b' },
    { fromImage: '' },
    { fromImage: 'a', fromImageRegistry: { type: 'registry', username: 'u' } },
    { fromImage: 'a', fromImageRegistry: { type: 'other' } },
  ];
  for (const body of bodies) {
    const answer = await harness.call('startBuild', { params, body });
    assert.equal(answer.body.error_code, 'bad_request', JSON.stringify(body));
  }
  const fromImageRegistry = { type: 'registry', username: 'u', password: 'p' };
  await harness.call('startBuild', { params, body: { fromImage: 'a', fromImageRegistry } });
  assert.deepEqual(harness.engine.templates.lastBuild?.credentials, { username: 'u', password: 'p' });
});

test('a failed build says why', async () => {
  await using harness = newHarness();
  const params = await request(harness);
  await harness.call('startBuild', { params, body: { fromImage: 'broken' } });
  const { body } = await harness.call('getBuildStatus', { params });
  assert.equal(body.status, 'error');
  assert.deepEqual(body.reason, { message: 'the image is broken', step: 'base', logEntries: [] });
});

test('a build log is read in pieces of at most 100, by offset or by time', async () => {
  await using harness = newHarness();
  harness.engine.templates.buildLog = Array.from({ length: 250 }, (_, n) => `line ${n}`);
  const params = await request(harness);
  await harness.call('startBuild', { params, body: { fromImage: 'a' } });
  const seen: string[] = [];
  for (let offset = 0; ; offset = seen.length) {
    const { body } = await harness.call('getBuildStatus', { params, query: { logsOffset: String(offset) } });
    assert.deepEqual(
      body.logs,
      body.logEntries.map((entry: { message: string }) => entry.message),
    );
    if (body.logs.length === 0) break;
    assert.ok(body.logs.length <= 100);
    seen.push(...body.logs);
  }
  assert.deepEqual(seen, harness.engine.templates.buildLog);
  const logs = await harness.call('getBuildLogs', { params, query: { direction: 'backward', limit: '2' } });
  assert.deepEqual(
    logs.body.logs.map((entry: { message: string }) => entry.message),
    ['line 249', 'line 248'],
  );
  assert.deepEqual((await harness.call('getBuildLogs', { params, query: { level: 'error' } })).body.logs, []);
  assert.equal((await harness.call('getBuildStatus', { params, query: { limit: '101' } })).status, 400);
});

test('unknown templates and builds are told apart', async () => {
  await using harness = newHarness();
  const { templateID } = await request(harness);
  const unknownTemplate = await harness.call('getBuildStatus', { params: NOWHERE });
  assert.equal(unknownTemplate.body.error_code, 'template_not_found');
  const unknownBuild = await harness.call('getBuildStatus', { params: { ...NOWHERE, templateID } });
  assert.equal(unknownBuild.body.error_code, 'build_not_found');
  const malformed = await harness.call('getBuildLogs', { params: { templateID, buildID: 'not-a-uuid' } });
  assert.equal(malformed.body.error_code, 'bad_request');
});

test('lists by page, v1 in one answer; builds of a template by page', async () => {
  await using harness = newHarness();
  for (let n = 0; n < 5; n++) {
    harness.template(`t${n}`);
    harness.clock.advance(1000);
  }
  const names = (body: { aliases: string[] }[]) => body.map((template) => template.aliases[0]);
  assert.deepEqual(names((await harness.call('listAllTemplates', { query: { teamID: 'x' } })).body), [
    't4',
    't3',
    't2',
    't1',
    't0',
  ]);
  const first = await harness.call('listTemplates', { query: { limit: '3' } });
  const nextToken = String(first.headers['x-next-token']);
  const second = await harness.call('listTemplates', { query: { limit: '3', nextToken } });
  assert.deepEqual([...names(first.body), ...names(second.body)], ['t4', 't3', 't2', 't1', 't0']);
  assert.equal(second.headers['x-next-token'], undefined);
  for (let n = 0; n < 2; n++) {
    harness.clock.advance(1000);
    await request(harness, { name: 't0' });
  }
  const builds = await harness.call('getTemplate', { params: { templateID: 't0' }, query: { limit: '2' } });
  assert.equal(builds.body.builds.length, 2);
  const rest = { limit: '2', nextToken: String(builds.headers['x-next-token']) };
  assert.equal(
    (await harness.call('getTemplate', { params: { templateID: 't0' }, query: rest })).body.builds.length,
    1,
  );
});

test('a template that a sandbox needs is not deleted', async () => {
  await using harness = newHarness();
  harness.template();
  const { body } = await harness.call('createSandbox', { body: { templateID: 'base' } });
  const refused = await harness.call('deleteTemplate', { params: { templateID: 'base' } });
  assert.equal(refused.status, 409);
  assert.ok(refused.body.message.includes(body.sandboxID));
});

test('the server tells its version, its figures, its machine and its one team', async () => {
  await using harness = newHarness();
  const stats = await harness.call('stats');
  assert.equal(stats.body.version, '1.2.3');
  assert.equal(stats.body.operations.create.succeeded, 1);
  assert.equal((await harness.call('doctor')).body.findings[0].check, 'qemu');
  const teams = await harness.call('listTeams', {
    headers: { 'x-api-key': '', authorization: `Bearer sk_${'e2b_0123456789abcdef0123456789abcdef01234567'}` },
  });
  assert.equal(teams.body[0].isDefault, true);
  assert.equal(teams.body[0].apiKey, 'e2b_0123456789abcdef0123456789abcdef01234567');
});
