/**
 * The commands as commander knows them. Their code is imported when one runs, so that `aenv --help` starts fast: this file
 * and what it imports stay small.
 */
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { VERSION } from './version.ts';

const DEFAULT_TIMEOUT_SECONDS = 300;

const ENVIRONMENT_HELP = `
Environment:
  AENV_URL      address of the server (default: what \`aenv auth\` saved, else http://127.0.0.1:8000)
  AENV_API_KEY  key for that server
  NO_COLOR      no colours

Exit code: 0, 1 for a failure, 2 for wrong usage; exec, start and connect return the code of the remote command.`;

function wholeNumber(minimum: number, maximum: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < minimum || value > maximum) {
      throw new InvalidArgumentError(`Expected a whole number from ${minimum} to ${maximum}.`);
    }
    return value;
  };
}

const seconds = wholeNumber(1, 2 ** 31 - 1);

const idArgument = () => new Argument('<id>', 'sandbox, as `aenv list` shows it');
const templateArgument = () => new Argument('<template>', 'id or name of the template');
const timeoutOption = () =>
  new Option('--timeout <seconds>', 'life of the sandbox from now').argParser(seconds).default(DEFAULT_TIMEOUT_SECONDS);
const olderOption = () =>
  new Option('--allow-older', 'an older snapshot will do when the newest of this name is not ready');
const userOption = () => new Option('-u, --user <name>', 'user in the sandbox (default: the template’s)');
const outputOption = () =>
  new Option('-o, --output <format>', 'table or json (default: table on a terminal, else json)').choices([
    'table',
    'json',
  ]);
const jsonOption = () => new Option('--json', 'same as --output json').implies({ output: 'json' });
const sizeOptions = () => [
  new Option('--cpu <count>', 'cores').argParser(wholeNumber(1, 256)),
  new Option('--memory <MiB>', 'memory').argParser(wholeNumber(128, 2 ** 24)),
  new Option('--disk <MiB>', 'size of the root disk').argParser(wholeNumber(64, 2 ** 26)),
];

function withOptions(command: Command, ...options: Option[]): Command {
  for (const option of options) command.addOption(option);
  return command;
}

const withOutput = (command: Command): Command => withOptions(command, outputOption(), jsonOption());

function addServerCommands(program: Command): void {
  program
    .command('auth')
    .description('Save the address of a server and its API key')
    .option('--url <url>', 'address of the server; asked for without it')
    .addHelpText(
      'after',
      '\nThe key is asked for on a terminal, else read from standard input:\n  aenv auth --url http://HOST:8000 < api-key',
    )
    .action(async (options) => (await import('./commands/auth.ts')).auth(options));
  withOutput(program.command('doctor').description('Show what the server’s machine has and lacks')).action(
    async (options) => (await import('./commands/doctor.ts')).doctor(options),
  );
}

function addStateCommands(program: Command): void {
  withOutput(
    program
      .command('ops')
      .description('Show the long operations in progress, or those of a sandbox')
      .argument('[id]', 'sandbox: its last operations, ended ones too')
      .option('-a, --all', 'those too that ended lately'),
  ).action(async (id, options) => (await import('./commands/operations.ts')).operations(id, options));
}

function addAudit(program: Command): void {
  withOutput(
    program
      .command('gc')
      .description('Free the disks of images that no template stands on')
      .option('--dry-run', 'only show what would go, and why'),
  ).action(async (options) => (await import('./commands/gc.ts')).gc(options));
  withOutput(program.command('node').description('Show what the machine has to give, and what it has promised')).action(
    async (options) => (await import('./commands/node.ts')).node(options),
  );
  withOutput(
    program
      .command('audit')
      .description('Compare the machine with what the server knows of: strays, and things that are missing')
      .option('--repair', 'remove what belongs to no record'),
  ).action(async (options) => (await import('./commands/audit.ts')).audit(options));
}

function addTemplateCommands(program: Command): void {
  const pull = program
    .command('pull')
    .description('Build a template from an OCI image')
    .argument('<image>', 'registry/name:tag, name@sha256:…, oci:DIR[:tag] or docker-archive:FILE (paths on the server)')
    .option('--name <name>', 'name of the template (default: the image’s)');
  withOptions(pull, ...sizeOptions())
    .option('--start-cmd <command>', 'run it before the capture; it goes on in every sandbox')
    .option('--ready-cmd <command>', 'capture when it exits with 0')
    .addOption(
      new Option('--probe <port>', 'capture when something listens on this port')
        .argParser(wholeNumber(1, 65_535))
        .conflicts('readyCmd'),
    )
    .option('-d, --detach', 'do not wait for the build')
    .action(async (image, options) => (await import('./commands/pull.ts')).pull(image, options));
  const template = program.command('template').alias('templates').description('List, watch and delete templates');
  withOutput(template.command('list').alias('ls').description('List the templates')).action(async (options) =>
    (await import('./commands/template.ts')).listTemplates(options),
  );
  template
    .command('watch')
    .description('Follow the newest build of a template')
    .addArgument(templateArgument())
    .action(async (name) => (await import('./commands/pull.ts')).watchTemplate(name));
  template
    .command('delete')
    .alias('rm')
    .description('Delete a template that no sandbox needs')
    .addArgument(templateArgument())
    .action(async (name) => (await import('./commands/template.ts')).deleteTemplate(name));
}

function addRunCommands(program: Command): void {
  const start = program
    .command('start')
    .description('Start a sandbox and open a shell in it')
    .argument('<target>', 'id or name of a template; with --cold an image')
    .option('-d, --detach', 'open no shell: print the id')
    .option('--cold', 'start straight from an image')
    .option('--secure', 'the sandbox asks for its access token')
    .addOption(olderOption())
    .addOption(timeoutOption());
  withOutput(withOptions(start, ...sizeOptions()))
    .addHelpText('after', '\n--cpu, --memory and --disk go with --cold: a template brings its own.')
    .action(async (target, options) => (await import('./commands/start.ts')).start(target, options));
  program
    .command('connect')
    .alias('cn')
    .description('Open a shell in a sandbox; a paused one is resumed')
    .addArgument(idArgument())
    .addOption(timeoutOption())
    .addOption(userOption())
    .action(async (id, options) => (await import('./commands/start.ts')).connect(id, options));
  program
    .command('exec')
    .description('Run a command in a sandbox')
    .addArgument(idArgument())
    .argument('<command...>', 'program and arguments; they are not read by a shell')
    .addOption(userOption())
    .option('-w, --cwd <directory>', 'where to run it (default: the template’s directory)')
    .option('--checkpoint', 'take a snapshot first, and print its id to stderr')
    .passThroughOptions()
    .addHelpText('after', "\nFor pipes and variables name a shell:\n  aenv exec ID sh -c 'ls | wc -l'")
    .action(async (id, words, options, self) => {
      // Options end at the id by themselves; the "--" that many type there is not part of the command.
      const command = words[0] === '--' ? words.slice(1) : words;
      if (command.length === 0) self.error("error: missing required argument 'command'");
      await (await import('./commands/exec.ts')).exec(id, command, options);
    });
}

function addSnapshotCommands(program: Command): void {
  const snapshot = program.command('snapshot').alias('snap').description('Take, list and delete copies of sandboxes');
  snapshot
    .command('create')
    .description('Copy memory and disk of a running sandbox, which goes on; the copy starts like a template')
    .addArgument(idArgument())
    .option('--name <name[:tag]>', 'name of the snapshot (default: none, only an id)')
    .option('--no-memory', 'copy only the disk: what starts from the snapshot boots')
    .action(async (id, options) => (await import('./commands/snapshot.ts')).createSnapshot(id, options));
  withOutput(
    snapshot.command('list').alias('ls').description('List the snapshots').option('--sandbox <id>', 'only those of it'),
  ).action(async (options) => (await import('./commands/snapshot.ts')).listSnapshots(options));
  withOutput(
    snapshot
      .command('diff')
      .description('Show which files and how much memory differ between two snapshots or templates')
      .argument('<from>', 'id or name')
      .argument('<to>', 'id or name'),
  ).action(async (from, to, options) => (await import('./commands/diff.ts')).diff(from, to, options));
  snapshot
    .command('delete')
    .alias('rm')
    .description('Delete a snapshot that no sandbox needs')
    .argument('<snapshot>', 'id or name; with :TAG only that one')
    .action(async (name) => (await import('./commands/snapshot.ts')).deleteSnapshot(name));
  withOutput(
    program
      .command('fork')
      .description('Start sandboxes with the state of a running one, which goes on')
      .addArgument(idArgument())
      .addOption(new Option('-n, --count <count>', 'how many').argParser(wholeNumber(1, 100)).default(1))
      .addOption(timeoutOption()),
  ).action(async (id, options) => (await import('./commands/snapshot.ts')).fork(id, options));
  withOutput(
    program
      .command('tree')
      .description('Show who came from whom: templates, sandboxes, snapshots, forks')
      .argument('<id>', 'sandbox (also one that has ended) or snapshot'),
  ).action(async (id, options) => (await import('./commands/tree.ts')).tree(id, options));
  program
    .command('rollback')
    .description('Put the state of a snapshot in the place of a sandbox’s')
    .addArgument(idArgument())
    .argument('<snapshot>', 'id or name of the snapshot')
    .addOption(olderOption())
    .action(async (id, snapshot, options) => (await import('./commands/snapshot.ts')).rollback(id, snapshot, options));
}

function addSandboxCommands(program: Command): void {
  withOutput(
    program
      .command('list')
      .alias('ls')
      .description('List the sandboxes')
      .addOption(new Option('--state <state>', 'only these').choices(['running', 'paused'])),
  ).action(async (options) => (await import('./commands/sandbox.ts')).list(options));
  program
    .command('pause')
    .description('Save memory and disk of a sandbox and free the machine')
    .addArgument(idArgument())
    .option('--no-memory', 'save only the disk: the sandbox boots when it goes on')
    .action(async (id, options) => (await import('./commands/sandbox.ts')).pause(id, options));
  program
    .command('resume')
    .description('Let a paused sandbox go on')
    .addArgument(idArgument())
    .addOption(timeoutOption())
    .option('--no-memory', 'boot it from its disk, even when its memory was saved')
    .action(async (id, options) => (await import('./commands/sandbox.ts')).resume(id, options));
  program
    .command('timeout')
    .description('Count the life of a sandbox anew from now')
    .addArgument(idArgument())
    .argument('<seconds>', 'until it ends', seconds)
    .action(async (id, value) => (await import('./commands/sandbox.ts')).setTimeout(id, value));
  program
    .command('delete')
    .alias('rm')
    .description('Kill sandboxes and remove all that is left of them')
    .argument('<id...>', 'sandboxes')
    .action(async (ids) => (await import('./commands/sandbox.ts')).remove(ids));
  withOutput(
    program
      .command('logs')
      .description('Show what happened to a sandbox, and its console')
      .addArgument(idArgument())
      .option('-f, --follow', 'go on with what comes'),
  ).action(async (id, options) => (await import('./commands/logs.ts')).logs(id, options));
}

function addFileCommands(program: Command): void {
  program
    .command('upload')
    .description('Copy a file or a directory into a sandbox')
    .addArgument(idArgument())
    .argument('<local>', 'file or directory')
    .argument('<remote>', 'path in the sandbox; into it where it is a directory')
    .addOption(userOption())
    .action(async (...args) => (await import('./commands/upload.ts')).upload(args[0], args[1], args[2], args[3]));
  program
    .command('download')
    .description('Copy a file or a directory out of a sandbox')
    .addArgument(idArgument())
    .argument('<remote>', 'path in the sandbox')
    .argument('[local]', 'where to; into it where it is a directory (default: here, under the same name)')
    .option('-f, --force', 'replace files that exist')
    .addOption(userOption())
    .action(async (...args) => (await import('./commands/download.ts')).download(args[0], args[1], args[2], args[3]));
}

function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('Print the completion script of a shell')
    .addArgument(new Argument('<shell>', 'which shell').choices(['bash', 'zsh', 'fish']))
    .addHelpText('after', '\nFor example, in ~/.bashrc:\n  eval "$(aenv completion bash)"')
    .action(async (shell) => (await import('./commands/completion.ts')).printScript(shell));
  program
    .command('complete', { hidden: true })
    .argument('[words...]')
    .allowUnknownOption()
    .action(async (words) => (await import('./commands/completion.ts')).complete(program, words));
}

export function createProgram(): Command {
  const program = new Command('aenv')
    .description('Sandboxes for AI agents: micro-VMs from OCI images')
    .version(VERSION)
    .enablePositionalOptions()
    .showHelpAfterError('(--help shows how it is used)')
    .configureHelp({ showGlobalOptions: false })
    .addHelpText('after', ENVIRONMENT_HELP);
  addServerCommands(program);
  addTemplateCommands(program);
  addRunCommands(program);
  addSandboxCommands(program);
  addSnapshotCommands(program);
  addFileCommands(program);
  addStateCommands(program);
  addAudit(program);
  addCompletion(program);
  exitWithoutProcess(program);
  return program;
}

/** Makes commander throw instead of ending the process, for it and all below. */
function exitWithoutProcess(command: Command): void {
  command.exitOverride();
  for (const child of command.commands) exitWithoutProcess(child);
}

function asksForJson(args: readonly string[]): boolean {
  return args.some(
    (arg, index) =>
      arg === '--json' || arg === '--output=json' || (/^(-o|--output)$/.test(args[index - 1] ?? '') && arg === 'json'),
  );
}

/** Runs one command line (without the program's own name); returns its exit code. */
export async function run(args: readonly string[]): Promise<number> {
  try {
    await createProgram().parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    return (await import('./failures.ts')).reportFailure(error, asksForJson(args));
  }
}
