/** Reads the configuration: flags before environment variables before the file before the defaults. */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { AenvError, isSystemError } from '@aenv/std';
import { parse, TomlError } from 'smol-toml';
import { isLoopback } from './kinds.ts';
import { nearest } from './nearest.ts';
import { type Config, DEFAULT_CONFIG_FILE, flagName, SETTINGS, type Setting, type SettingName } from './settings.ts';

export interface LoadedConfig {
  config: Config;
  /** The file that was read, if any. */
  file?: string;
  /** AENV_* variables that mean nothing to the server or the CLI, each with the nearest name. */
  unknownVariables: string[];
}

/** Variables of ours that are no settings: the file itself, and what the CLI reads. */
const OTHER_VARIABLES = ['AENV_CONFIG', 'AENV_URL', 'AENV_API_KEY'];

type AnySetting = Setting<unknown>;
const ENTRIES = Object.entries(SETTINGS) as [SettingName, AnySetting][];
const KEYS = ENTRIES.map(([, setting]) => setting.key);

function invalid(message: string, remedy?: string): AenvError {
  return new AenvError('config_invalid', message, { remedy });
}

function meant(name: string, known: string[]): string | undefined {
  const near = nearest(name, known);
  return near === undefined ? undefined : `Did you mean ${near}?`;
}

/** Reads one value; the error names where it came from. */
function read<T>(where: string, parseValue: () => T): T {
  try {
    return parseValue();
  } catch (error) {
    throw invalid(`${where} ${error instanceof Error ? error.message : error}`);
  }
}

/** The file's values by `section.key`; only what the table knows may be in it. */
function flatten(table: object, prefix = ''): Map<string, unknown> {
  const out = new Map<string, unknown>();
  for (const [name, value] of Object.entries(table)) {
    const key = prefix + name;
    const isTable = typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
    if (isTable) for (const entry of flatten(value, `${key}.`)) out.set(...entry);
    else out.set(key, value);
  }
  return out;
}

function readFileValues(file: string, required: boolean): Map<string, unknown> | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (!required && isSystemError(error, 'ENOENT')) return undefined;
    throw invalid(`the configuration file ${file} cannot be read: ${error instanceof Error ? error.message : error}`);
  }
  return parseFile(file, text);
}

/** Values of a TOML text by `section.key`; `config_invalid` names the line, or the unknown key with the nearest known one. */
export function parseFile(file: string, text: string): Map<string, unknown> {
  let values: Map<string, unknown>;
  try {
    values = flatten(parse(text));
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    throw invalid(`${file}:${error.line}:${error.column}: ${error.message.split('\n')[0]}`);
  }
  for (const key of values.keys()) {
    if (!KEYS.includes(key)) throw invalid(`${file}: unknown key ${key}`, meant(key, KEYS));
  }
  return values;
}

function parseFlags(argv: string[]): Record<string, string | undefined> {
  const known = ['config', ...ENTRIES.map(([, setting]) => flagName(setting))];
  for (const argument of argv) {
    const name = /^--([^=]+)/.exec(argument)?.[1];
    if (name !== undefined && !known.includes(name)) {
      const near = nearest(name, known);
      throw invalid(`unknown flag --${name}`, near ? `Did you mean --${near}?` : 'See --help.');
    }
  }
  try {
    const options = Object.fromEntries(known.map((name) => [name, { type: 'string' } as const]));
    return parseArgs({ args: argv, options, allowPositionals: false }).values;
  } catch (error) {
    throw invalid(error instanceof Error ? error.message : String(error), 'See --help.');
  }
}

function unknownVariables(env: NodeJS.ProcessEnv): string[] {
  const known = [...OTHER_VARIABLES, ...ENTRIES.map(([, setting]) => setting.env)];
  return Object.keys(env)
    .filter((name) => name.startsWith('AENV_') && !known.includes(name))
    .map((name) => `${name} means nothing to the server. ${meant(name, known) ?? ''}`.trim());
}

/** `config_invalid` names the flag, variable, or file and key that is wrong, and how. */
export function loadConfig(
  argv: string[],
  env: NodeJS.ProcessEnv,
  defaultFile: string = DEFAULT_CONFIG_FILE,
): LoadedConfig {
  const flags = parseFlags(argv);
  const named = flags.config ?? (env.AENV_CONFIG || undefined);
  const file = named ?? defaultFile;
  const fromFile = readFileValues(file, named !== undefined);
  const value = (setting: AnySetting): unknown => {
    const flag = flags[flagName(setting)];
    if (flag !== undefined) return read(`--${flagName(setting)}`, () => setting.kind.fromText(flag));
    const variable = env[setting.env];
    // Empty means unset, as in most programs that a unit file or a container configures.
    if (variable) return read(setting.env, () => setting.kind.fromText(variable));
    if (fromFile?.has(setting.key))
      return read(`${file}: ${setting.key}`, () => setting.kind.fromToml(fromFile.get(setting.key)));
    return setting.fallback;
  };
  const config = Object.fromEntries(ENTRIES.map(([name, setting]) => [name, value(setting)])) as Config;
  checkTogether(config);
  return { config, file: fromFile && file, unknownVariables: unknownVariables(env) };
}

function checkTogether(config: Config): void {
  if (config.allowRemote || isLoopback(config.listen.host)) return;
  throw invalid(
    `listen is ${config.listen.host}, which other machines can reach`,
    'Listen on 127.0.0.1, or set allow_remote = true (AENV_ALLOW_REMOTE=true) and put something that speaks TLS in front.',
  );
}
