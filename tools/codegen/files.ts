/** Writes generated files, or tells how the committed ones differ from them. */
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Path below the output directory → content. */
export type GeneratedFiles = Map<string, string>;

function existingFiles(directory: string): string[] {
  return globSync('**/*.ts', { cwd: directory });
}

/** One line for each file that is missing, differs, or should not be there; empty when nothing drifted. */
export function drift(directory: string, files: GeneratedFiles): string[] {
  const problems: string[] = [];
  for (const [name, content] of files) {
    const path = join(directory, name);
    if (!existsSync(path)) problems.push(`${name}: missing`);
    else if (readFileSync(path, 'utf8') !== content) problems.push(`${name}: differs from what spec/ says`);
  }
  for (const name of existingFiles(directory)) {
    if (!files.has(name)) problems.push(`${name}: nothing generates it`);
  }
  return problems;
}

/** Makes `directory` hold exactly `files`. */
export function writeFiles(directory: string, files: GeneratedFiles): void {
  for (const [name, content] of files) {
    const path = join(directory, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }
  for (const name of existingFiles(directory)) {
    if (!files.has(name)) rmSync(join(directory, name));
  }
}
