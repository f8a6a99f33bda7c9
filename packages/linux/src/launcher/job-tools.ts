/**
 * The programs that the server may have run, and what their arguments may be. A job runs as a user that owns nothing but
 * `$AENV_HOME/images`; the one file outside of it that a tool writes is named here, so that it can be handed over.
 */
import { AenvError } from '@aenv/std';
import type { Home } from '../home.ts';
import { textList } from './fields.ts';
import { QEMU, qemuArgv } from './qemu-argv.ts';

export interface JobPlan {
  /** A system program, or `node` for a script of this project. */
  program: string;
  args: string[];
  /** The script, for node: its path below the project's root. */
  script?: string;
  /** A file that the tool makes or changes and that becomes the launcher's again afterwards. */
  output?: string;
  /** Whether the tool talks to the world outside. */
  network: boolean;
  kvm: boolean;
}

interface Shape {
  flags: string[];
  valued: string[];
  /** Options whose value is a path. */
  paths: string[];
  maxPositional: number;
}

const SHAPES = {
  'qemu-img create': { flags: ['-q', '-u'], valued: ['-f', '-F', '-o'], paths: ['-b'], maxPositional: 2 },
  'qemu-img info': { flags: [], valued: ['-f', '--output'], paths: [], maxPositional: 1 },
  mke2fs: {
    flags: ['-F', '-q'],
    valued: ['-t', '-b', '-I', '-i', '-N', '-m', '-L', '-U', '-E', '-O', '-T', '-j'],
    paths: ['-d'],
    maxPositional: 2,
  },
  resize2fs: { flags: ['-f', '-p', '-M'], valued: [], paths: [], maxPositional: 2 },
} satisfies Record<string, Shape>;

/** Names in a `-o` list that do not name further files. */
const CREATE_OPTIONS = /^(cluster_size|extended_l2|lazy_refcounts|compat|preallocation)=[0-9a-zA-Z.]+$/;

/** Text that a value of an option may be. */
const PLAIN = /^[\w.,:=+-]*$/;

type Planner = (args: string[], home: Home) => JobPlan;

const TOOLS: Record<string, Planner> = {
  'qemu-img': planQemuImg,
  mke2fs: (args, home) => planFileTool('mke2fs', SHAPES.mke2fs, args, home),
  resize2fs: (args, home) => planFileTool('resize2fs', SHAPES.resize2fs, args, home),
  [QEMU]: planProbe,
  'image-pull': (args) => {
    if (args.length > 0) throw new AenvError('bad_request', 'image-pull takes its request on stdin');
    return { program: 'node', script: 'apps/server/src/jobs/image-pull.ts', args, network: true, kvm: false };
  },
};

/** Checks a tool's name and arguments; `bad_request` for what is not on the list. */
export function planJob(tool: string, value: unknown, home: Home): JobPlan {
  const planner = Object.hasOwn(TOOLS, tool) ? TOOLS[tool] : undefined;
  if (!planner) throw new AenvError('bad_request', `the launcher runs no tool '${tool.slice(0, 40)}'`);
  return planner(textList(value, 'args', 200, 8192), home);
}

/** A VMM that finds out, with a deadline, what the host can do. It has no network and owns no file. */
function planProbe(args: string[]): JobPlan {
  const plan = { program: QEMU, network: false, kvm: true };
  if (args.length === 1 && args[0] === '--version') return { ...plan, args };
  return { ...plan, args: qemuArgv([QEMU, ...args]).slice(1) };
}

function planQemuImg(args: string[], home: Home): JobPlan {
  const plan = { program: 'qemu-img', args, network: false, kvm: false };
  if (args.length === 1 && args[0] === '--version') return plan;
  const [command, ...rest] = args;
  if (command === 'info') {
    checkShape(SHAPES['qemu-img info'], rest, home);
    return plan;
  }
  if (command !== 'create') throw new AenvError('bad_request', 'qemu-img is run for create and info only');
  const { positional, values } = checkShape(SHAPES['qemu-img create'], rest, home);
  for (const option of (values.get('-o') ?? '').split(',').filter(Boolean)) {
    if (!CREATE_OPTIONS.test(option)) throw new AenvError('bad_request', `qemu-img create -o ${option} is not allowed`);
  }
  return { ...plan, output: home.resolve(positional[0], 'the file of qemu-img create') };
}

function planFileTool(program: string, shape: Shape, args: string[], home: Home): JobPlan {
  const plan = { program, args, network: false, kvm: false };
  if (args.length === 1 && args[0] === '-V') return plan;
  const { positional } = checkShape(shape, args, home);
  return { ...plan, output: home.resolve(positional[0], `the file of ${program}`) };
}

interface Parsed {
  positional: string[];
  values: Map<string, string>;
}

function checkShape(shape: Shape, args: string[], home: Home): Parsed {
  const parsed: Parsed = { positional: [], values: new Map() };
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at] ?? '';
    if (shape.flags.includes(arg)) continue;
    if (shape.valued.includes(arg) || shape.paths.includes(arg)) {
      at += 1;
      parsed.values.set(arg, checkValue(arg, args[at], shape, home));
    } else if (arg.startsWith('-') || parsed.positional.length >= shape.maxPositional) {
      throw new AenvError('bad_request', `the argument '${arg.slice(0, 100)}' is not allowed`);
    } else {
      parsed.positional.push(arg);
    }
  }
  const [path, size] = parsed.positional;
  home.resolve(path, 'the file');
  if (size !== undefined && !/^\d{1,15}[KMGTks]?$/.test(size)) {
    throw new AenvError('bad_request', `the size '${size.slice(0, 40)}' is not a number with a unit`);
  }
  return parsed;
}

function checkValue(option: string, value: string | undefined, shape: Shape, home: Home): string {
  if (value === undefined) throw new AenvError('bad_request', `${option} needs a value`);
  if (shape.paths.includes(option) && value !== '-') home.resolve(value, option);
  else if (!PLAIN.test(value)) throw new AenvError('bad_request', `the value of ${option} is not allowed`);
  return value;
}
