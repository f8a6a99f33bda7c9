/**
 * Holds the dependency arrows: a package imports only lower layers and what its package.json lists, nothing imports in a
 * circle, and only the packages named in WALLS touch processes, SQLite or sockets. Part of `make lint`.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const LAYERS: Record<string, number> = {
  '@aenv/std': 0,
  '@aenv/protocol': 0,
  '@aenv/lifecycle': 1,
  '@aenv/linux': 1,
  '@aenv/image': 1,
  '@aenv/disk': 1,
  '@aenv/guest': 1,
  '@aenv/vmm': 2,
  '@aenv/client': 2,
  '@aenv/snapshot': 3,
  '@aenv/proxy': 3,
  '@aenv/orchestrator': 4,
  '@aenv/api': 5,
  '@aenv/server': 6,
  '@aenv/cli': 6,
  '@aenv/testkit': 6,
  '@aenv/codegen': 6,
};

/** A module that only these packages may import (tests are free to). */
const WALLS: Record<string, string[]> = {
  'node:child_process': ['@aenv/linux'],
  'node:sqlite': ['@aenv/orchestrator'],
  'node:net': ['@aenv/linux', '@aenv/image', '@aenv/vmm', '@aenv/guest', '@aenv/proxy', '@aenv/client', '@aenv/server'],
};

/** The CLI runs on machines without a server, so it must not pull the server's code in. */
const CLI_MAY_IMPORT = new Set(['@aenv/std', '@aenv/protocol', '@aenv/guest', '@aenv/client']);

const IMPORT =
  /(?:^|\n)\s*(?:import|export)\s[^'"]*?from\s*['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)|(?:^|\n)\s*import\s*['"]([^'"]+)['"]/g;

interface Manifest {
  name: string;
  dependencies?: Record<string, string>;
}

function packageOf(specifier: string): string {
  const parts = specifier.split('/');
  return specifier.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? specifier);
}

function importsOf(file: string): string[] {
  return [...readFileSync(file, 'utf8').matchAll(IMPORT)].map((match) => match[1] ?? match[2] ?? match[3] ?? '');
}

function checkImport(from: Manifest, specifier: string, isTest: boolean): string | undefined {
  const wall = WALLS[specifier];
  if (wall && !isTest && !wall.includes(from.name)) return `only ${wall.join(', ')} may import ${specifier}`;
  if (specifier.startsWith('.') || specifier.startsWith('node:')) return undefined;
  const target = packageOf(specifier);
  if (target === from.name) return 'a package imports its own files by relative path';
  if (isTest) return undefined;
  if (!from.dependencies?.[target]) return `${target} is not among the dependencies in its package.json`;
  const layer = LAYERS[target];
  if (layer === undefined) return undefined;
  if (layer >= (LAYERS[from.name] ?? 0)) return `${target} is not in a lower layer than ${from.name}`;
  if (from.name === '@aenv/cli' && !CLI_MAY_IMPORT.has(target)) return `the CLI must not import ${target}`;
  return undefined;
}

const problems: string[] = [];
for (const manifestPath of globSync('{packages,apps}/*/package.json')) {
  const manifest = JSON.parse(readFileSync(manifestPath, 'utf8')) as Manifest;
  if (LAYERS[manifest.name] === undefined)
    problems.push(`${manifestPath}: ${manifest.name} has no layer in tools/check-layers.ts`);
  for (const file of globSync(join(dirname(manifestPath), 'src/**/*.ts'))) {
    const isTest = /\.test\.ts$|\/testing\//.test(file) || manifest.name === '@aenv/testkit';
    for (const specifier of importsOf(file)) {
      const problem = checkImport(manifest, specifier, isTest);
      if (problem) problems.push(`${file}: imports ${specifier}: ${problem}`);
    }
  }
}
if (problems.length > 0) {
  console.error(problems.join('\n'));
  process.exit(1);
}
console.log('layers: every import points downwards');
