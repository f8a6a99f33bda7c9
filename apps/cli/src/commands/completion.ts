/** Shell completion: the script of a shell, and the answers that it asks for. */
import { createAenvClient } from '@aenv/client';
import { withDeadline } from '@aenv/std';
import tab from '@bomb.sh/tab';
import type { Command } from 'commander';
import { serverAccess } from '../credentials.ts';

/** Nobody waits longer than this for a Tab key, milliseconds. */
const BUDGET_MS = 1000;

interface Candidate {
  value: string;
  description: string;
}

/** Lists that the server has. */
type Kind = 'id' | 'template' | 'snapshot';

/** What the server has, for arguments of this name; nothing where it does not answer. */
async function candidates(argument: Kind): Promise<Candidate[]> {
  try {
    await using client = createAenvClient(serverAccess());
    if (argument === 'id') {
      const sandboxes = await withDeadline(client.sandboxes.list(), BUDGET_MS, 'completion');
      return sandboxes.map(({ sandboxID, alias, state }) => ({
        value: sandboxID,
        description: `${alias ?? ''} ${state}`,
      }));
    }
    if (argument === 'snapshot') {
      const snapshots = await withDeadline(client.snapshots.list(), BUDGET_MS, 'completion');
      return snapshots.map(({ snapshotID, sandboxID }) => ({ value: snapshotID, description: `of ${sandboxID}` }));
    }
    const templates = await withDeadline(client.templates.list(), BUDGET_MS, 'completion');
    return templates.map(({ templateID, names }) => ({ value: names[0] ?? templateID, description: templateID }));
  } catch {
    return [];
  }
}

/** Arguments that name something on the server. */
const SERVER_ARGUMENTS: Record<string, Kind> = {
  id: 'id',
  template: 'template',
  target: 'template',
  snapshot: 'snapshot',
};

type Found = Record<Kind, Candidate[]>;

function offering(values: readonly Candidate[]): (complete: (value: string, description: string) => void) => void {
  return (complete) => {
    for (const { value, description } of values) complete(value, description);
  };
}

function describe(command: Command, path: string, found: Found): void {
  for (const child of command.createHelp().visibleCommands(command)) {
    if (child.name() === 'help') continue;
    for (const name of [child.name(), ...child.aliases()]) {
      const childPath = `${path} ${name}`.trim();
      const entry = tab.command(childPath, child.description());
      for (const option of child.options) {
        const long = option.long?.slice(2) ?? '';
        const short = option.short?.slice(1);
        const values = (option.argChoices ?? []).map((value) => ({ value, description: '' }));
        if (option.isBoolean()) entry.option(long, option.description, short ?? '');
        else entry.option(long, option.description, offering(values), short);
      }
      for (const argument of child.registeredArguments) {
        const kind = SERVER_ARGUMENTS[argument.name()];
        const fixed = (argument.argChoices ?? []).map((value) => ({ value, description: '' }));
        const values = kind === undefined ? fixed : found[kind];
        entry.argument(argument.name(), offering(values), argument.variadic);
      }
      describe(child, childPath, found);
    }
  }
}

/** Which of the server's lists the words can ask for: a completed command is followed by its arguments. */
function wanted(program: Command, words: readonly string[]): Kind[] {
  let command = program;
  for (const word of words.slice(0, -1)) {
    const child = command.commands.find((candidate) => candidate.name() === word || candidate.aliases().includes(word));
    if (child) command = child;
  }
  const kinds = command.registeredArguments.map((argument) => SERVER_ARGUMENTS[argument.name()]);
  return [...new Set(kinds.filter((kind) => kind !== undefined))];
}

/** Prints the candidates for the last of `words`, as the scripts of @bomb.sh/tab read them. */
export async function complete(program: Command, words: string[]): Promise<void> {
  const found: Found = { id: [], template: [], snapshot: [] };
  for (const kind of wanted(program, words)) found[kind] = await candidates(kind);
  describe(program, '', found);
  tab.parse(words);
}

export function printScript(shell: string): void {
  tab.setup('aenv', 'aenv', shell);
}
