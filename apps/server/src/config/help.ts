/** The settings as text for people: `--help` and docs/configuration.md. */
import { DEFAULT_CONFIG_FILE, flagName, SETTINGS, type Setting } from './settings.ts';

const ALL = Object.values(SETTINGS) as Setting<unknown>[];

function defaultText(setting: Setting<unknown>): string {
  const text = setting.kind.show(setting.fallback);
  return text === '' ? 'empty' : `${text}${setting.unit ? ` ${setting.unit}` : ''}`;
}

export function usage(): string {
  const lines = ALL.map((setting) => {
    const flag = `  --${flagName(setting)} VALUE`;
    return `${flag}\n      ${setting.description}\n      (${setting.env}, default ${defaultText(setting)})`;
  });
  return [
    'Usage: aenv-server [--config FILE] [--SETTING VALUE ...]',
    '',
    `Settings come from flags, then AENV_* variables, then the TOML file (--config, AENV_CONFIG or`,
    `${DEFAULT_CONFIG_FILE}), then the defaults.`,
    '',
    ...lines,
    '',
  ].join('\n');
}

/** A TOML value with the default, as it would stand in the file. */
function tomlDefault(setting: Setting<unknown>): string {
  const { fallback, kind } = setting;
  if (typeof fallback === 'number' || typeof fallback === 'boolean') return String(fallback);
  return JSON.stringify(Array.isArray(fallback) ? fallback : kind.show(fallback));
}

/** The whole table as a TOML file that states every default. */
export function exampleFile(): string {
  const sections = new Map<string, string[]>([['', []]]);
  for (const setting of ALL) {
    const dot = setting.key.lastIndexOf('.');
    const section = dot < 0 ? '' : setting.key.slice(0, dot);
    const line = `${setting.key.slice(dot + 1)} = ${tomlDefault(setting)}${setting.unit ? `  # ${setting.unit}` : ''}`;
    sections.set(section, [...(sections.get(section) ?? []), line]);
  }
  return [...sections]
    .map(([section, lines]) => (section ? [`[${section}]`, ...lines] : lines).join('\n'))
    .join('\n\n');
}

/** docs/configuration.md. */
export function configurationPage(): string {
  const entries = ALL.map((setting) =>
    [
      `### \`${setting.key}\``,
      '',
      setting.description,
      '',
      `- Variable: \`${setting.env}\`; flag: \`--${flagName(setting)}\``,
      `- Values: ${setting.kind.label}${setting.unit ? `, in ${setting.unit}` : ''}`,
      `- Default: ${setting.kind.show(setting.fallback) === '' ? 'empty' : `\`${setting.kind.show(setting.fallback)}\``}`,
      '',
    ].join('\n'),
  );
  return [
    '# Configuration of the server',
    '',
    'A setting is taken from the first of: a command-line flag, an environment variable, the configuration file, the',
    `default. The file is TOML; \`--config FILE\` or \`AENV_CONFIG\` names it, and \`${DEFAULT_CONFIG_FILE}\` is read when it`,
    'exists and neither is given. A key that the server does not know is refused, with the nearest name that it knows.',
    '',
    'With every default written out:',
    '',
    '```toml',
    exampleFile(),
    '```',
    '',
    '## Settings',
    '',
    ...entries,
    '## API keys',
    '',
    'The first start writes a fresh key to `secrets/api-key` below `home`, readable for root alone. The file may hold',
    'several keys, one a line; `#` starts a comment. A changed file counts from the next start on; a restart does not',
    'disturb running sandboxes.',
    '',
  ].join('\n');
}
