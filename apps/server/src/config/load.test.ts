import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { loadConfig, parseFile } from './load.ts';
import { editDistance, nearest } from './nearest.ts';
import { SETTINGS } from './settings.ts';

/** Without the file of the machine that the tests run on. */
const load = (argv: string[], env: NodeJS.ProcessEnv) => loadConfig(argv, env, '/nonexistent/aenv.toml');

function configFile(t: TestContext, text: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'aenv-config-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, 'aenv.toml');
  writeFileSync(file, text);
  return file;
}

function refusal(work: () => unknown): { code: string; message: string; remedy?: string } {
  try {
    work();
  } catch (error) {
    return error as { code: string; message: string; remedy?: string };
  }
  return assert.fail('it was accepted');
}

test('without anything, every setting has its default', () => {
  const { config } = load([], {});
  for (const [name, setting] of Object.entries(SETTINGS))
    assert.deepEqual(config[name as keyof typeof config], setting.fallback, name);
});

test('a flag goes before a variable, a variable before the file, the file before the default', (t) => {
  const file = configFile(t, '[template]\ncpu_count = 3\nmemory_mb = 600\ndisk_mb = 700\n');
  const env = { AENV_CONFIG: file, AENV_TEMPLATE_CPU_COUNT: '4', AENV_TEMPLATE_MEMORY_MB: '800' };
  const { config, file: used } = load(['--template-cpu-count', '5'], env);
  assert.deepEqual([config.cpuCount, config.memoryMb, config.diskMb], [5, 800, 700]);
  assert.equal(config.maxRunning, SETTINGS.maxRunning.fallback);
  assert.equal(used, file);
});

test('every setting can be read from the file and from its variable, and means the same', (t) => {
  for (const [name, setting] of Object.entries(SETTINGS)) {
    const text = setting.kind.show(setting.fallback as never);
    const { config } = load([], { [setting.env]: text });
    assert.deepEqual(config[name as keyof typeof config], setting.fallback, name);
    const value = Array.isArray(setting.fallback) ? setting.fallback : text;
    const toml = ['number', 'boolean'].includes(typeof setting.fallback) ? text : JSON.stringify(value);
    const file = configFile(t, `${setting.key} = ${toml}\n`);
    const fromFile = load(['--config', file], {}).config;
    assert.deepEqual(fromFile[name as keyof typeof config], setting.fallback, name);
  }
});

test('an unknown key, flag or variable is named with the one that was probably meant', (t) => {
  const file = configFile(t, '[sandbox]\nmax_runing = 5\n');
  const key = refusal(() => load(['--config', file], {}));
  assert.equal(key.code, 'config_invalid');
  assert.match(key.message, /unknown key sandbox\.max_runing/);
  assert.match(key.remedy ?? '', /sandbox\.max_running/);
  const flag = refusal(() => load(['--lisen=127.0.0.1:1'], {}));
  assert.match(`${flag.message} ${flag.remedy}`, /unknown flag --lisen Did you mean --listen\?/);
  const { unknownVariables } = load([], { AENV_LISTN: 'x', AENV_URL: 'y', PATH: 'z' });
  assert.deepEqual(unknownVariables, ['AENV_LISTN means nothing to the server. Did you mean AENV_LISTEN?']);
});

test('a wrong value is refused with its place and what would be right', (t) => {
  const cases: [string, RegExp][] = [
    ['home = "relative"', /home must be an absolute path/],
    ['listen = "8000"', /listen must be ADDRESS:PORT/],
    ['listen = "127.0.0.1:65536"', /listen must be ADDRESS:PORT/],
    ['listen = "::1:80"', /listen must be ADDRESS:PORT/],
    ['listen = 8000', /listen must be a string/],
    ['allow_remote = "true"', /allow_remote must be true or false/],
    ['domains = "a.example"', /domains must be an array/],
    ['domains = []', /domains must name at least one/],
    ['domains = ["a_b"]', /domains must list domain names/],
    ['[log]\nlevel = "loud"', /log\.level must be one of debug, info, warn, error/],
    ['[sandbox]\nmax_running = 0', /sandbox\.max_running must be a whole number from 1 to 10000/],
    ['[sandbox]\nmax_running = 1.5', /whole number/],
    ['[sandbox]\nmax_running = "5"', /whole number/],
    ['home = "/x"\nhome = "/y"', /aenv\.toml:2:1/],
    ['[sandbox', /aenv\.toml:1:/],
  ];
  for (const [text, message] of cases) {
    const error = refusal(() => load(['--config', configFile(t, text)], {}));
    assert.equal(error.code, 'config_invalid', text);
    assert.match(error.message, message);
  }
  assert.match(refusal(() => load([], { AENV_SANDBOX_MAX_RUNNING: '1e3' })).message, /^AENV_SANDBOX_MAX_RUNNING/);
  assert.match(refusal(() => load(['--config', '/nowhere/aenv.toml'], {})).message, /cannot be read/);
  assert.match(refusal(() => load(['serve'], {})).remedy ?? '', /--help/);
});

test('an address that others can reach needs a second, explicit word', () => {
  for (const listen of ['0.0.0.0:8000', '[::]:8000', '192.0.2.1:80', '128.0.0.1:80']) {
    const error = refusal(() => load([], { AENV_LISTEN: listen }));
    assert.match(error.message, /which other machines can reach/);
    assert.match(error.remedy ?? '', /allow_remote/);
    assert.equal(load([], { AENV_LISTEN: listen, AENV_ALLOW_REMOTE: 'true' }).config.allowRemote, true);
  }
  for (const listen of ['127.0.0.1:0', '127.8.8.8:1', '[::1]:9', 'localhost:8000'])
    assert.doesNotThrow(() => load([], { AENV_LISTEN: listen }));
});

test('no text makes the reader of files fail in another way than config_invalid', () => {
  const line = fc.oneof(
    fc.string(),
    fc.constantFrom(
      '[sandbox]',
      '[[log]]',
      'home = "/x"',
      'listen = 1979-05-27',
      '[home]',
      'a = {b = []}',
      'x.y.z = 1',
    ),
  );
  fc.assert(
    fc.property(fc.array(line), (lines) => {
      try {
        parseFile('aenv.toml', lines.join('\n'));
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'config_invalid');
      }
    }),
  );
});

test('the distance between names is a metric', () => {
  const name = fc.string({ maxLength: 12 });
  fc.assert(
    fc.property(name, name, name, (a, b, c) => {
      assert.equal(editDistance(a, a), 0);
      assert.equal(editDistance(a, b), editDistance(b, a));
      assert.ok(editDistance(a, c) <= editDistance(a, b) + editDistance(b, c));
      assert.ok(editDistance(a, b) >= Math.abs(a.length - b.length));
    }),
  );
  assert.equal(nearest('kitten', ['sitting', 'unrelated']), undefined);
  assert.equal(nearest('memory_mib', ['memory_mb', 'disk_mb']), 'memory_mb');
});
