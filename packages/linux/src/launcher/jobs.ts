/** Runs tools for the server: unprivileged, with a deadline, gone together with the one who asked for them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AenvError } from '@aenv/std';
import { JOB_UID } from '../addresses.ts';
import { COMMAND_ENVIRONMENT, findProgram, spawnError } from '../commands.ts';
import type { Home } from '../home.ts';
import type { JobResult } from '../launcher-api.ts';
import { confinedArgv } from './confine.ts';
import type { JobPlan } from './job-tools.ts';
import { CODE_DIRECTORY } from './paths.ts';
import { LineSplitter } from './wire.ts';

const MAX_JOBS = 64;
const TAIL_BYTES = 64 << 10;
const MAX_OUTPUT_LINE = 1 << 20;
/** Root of the checkout, or of the installed program. */
const PROJECT_ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '../../../..');

/** What a job with network gets from the launcher's environment. */
const NETWORK_VARIABLES =
  /^(https?_proxy|no_proxy|all_proxy|node_use_env_proxy|node_extra_ca_certs|ssl_cert_file|ssl_cert_dir)$/i;

export interface Job {
  plan: JobPlan;
  stdin: string;
  timeoutMs: number;
  /** Kills the job when it is aborted. */
  signal: AbortSignal;
  onLine: (line: string) => void;
}

export class JobRunner {
  readonly #home: Home;
  #running = 0;

  constructor(home: Home) {
    this.#home = home;
  }

  get running(): number {
    return this.#running;
  }

  /** Runs a job to its end, whatever its exit code; `timeout` when it had to be killed for its deadline. */
  async run(job: Job): Promise<JobResult> {
    if (this.#running >= MAX_JOBS) {
      throw new AenvError('capacity_exhausted', `${MAX_JOBS} jobs are running already; try again later`);
    }
    this.#running += 1;
    try {
      const { output } = job.plan;
      if (!output) return await runToEnd(job);
      await this.#home.give(output, JOB_UID);
      try {
        return await runToEnd(job);
      } finally {
        await this.#home.give(output, process.geteuid?.() ?? 0);
      }
    } finally {
      this.#running -= 1;
    }
  }
}

async function runToEnd({ plan, stdin, timeoutMs, signal, onLine }: Job): Promise<JobResult> {
  const [program = '', ...args] = commandOf(plan);
  signal.throwIfAborted();
  const child = spawn(program, args, { cwd: '/', env: environmentOf(plan), stdio: 'pipe', detached: true });
  const kill = () => killGroup(child);
  signal.addEventListener('abort', kill, { once: true });
  let expired = false;
  const timer = setTimeout(() => {
    expired = true;
    kill();
  }, timeoutMs);
  try {
    const result = await collect(child, plan.program, stdin, onLine);
    if (expired) throw new AenvError('timeout', `${plan.program} did not finish within ${timeoutMs} ms`);
    return result;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', kill);
    kill();
  }
}

function environmentOf({ network }: JobPlan): Record<string, string | undefined> {
  if (!network) return COMMAND_ENVIRONMENT;
  const passed = Object.entries(process.env).filter(([name]) => NETWORK_VARIABLES.test(name));
  return { ...Object.fromEntries(passed), ...COMMAND_ENVIRONMENT };
}

/** The job leads a process group of its own, in which everything that it starts remains. */
function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The whole group is gone.
  }
}

function collect(
  child: ReturnType<typeof spawn>,
  name: string,
  stdin: string,
  onLine: (line: string) => void,
): Promise<JobResult> {
  const stdout = new Tail();
  const stderr = new Tail();
  const lines = new LineSplitter(MAX_OUTPUT_LINE);
  return new Promise((resolvePromise, reject) => {
    child.on('error', (error) => reject(spawnError(name, error)));
    // A program that ends before it has read its input says so by its exit code.
    child.stdin?.on('error', () => {}).end(stdin);
    child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk));
    child.stdout?.on('data', (chunk: Buffer) => {
      stdout.push(chunk);
      try {
        lines.push(chunk).forEach(onLine);
      } catch (error) {
        reject(error);
      }
    });
    child.on('close', (code, signal) => {
      resolvePromise({ code, signal, stdout: stdout.text(), stderr: stderr.text() });
    });
  });
}

/** The last 64 KiB of a stream. */
class Tail {
  #parts: Buffer[] = [];
  #length = 0;

  push(chunk: Buffer): void {
    this.#parts.push(chunk);
    this.#length += chunk.length;
    if (this.#length > 2 * TAIL_BYTES) {
      this.#parts = [Buffer.concat(this.#parts).subarray(-TAIL_BYTES)];
      this.#length = TAIL_BYTES;
    }
  }

  text(): string {
    return Buffer.concat(this.#parts).subarray(-TAIL_BYTES).toString('utf8');
  }
}

/**
 * Program and arguments of the whole chain. A script of this project may lie where the job's user cannot go (/root), and
 * so may the Node that runs it: both are shown to it in a place that everybody can read.
 */
function commandOf({ program, args, script, network, kvm }: JobPlan): string[] {
  const confinement = { uid: JOB_UID, network: network ? 'host' : 'new', dieWithLauncher: true, kvm } as const;
  if (script === undefined) return confinedArgv([findProgram(program), ...args], confinement);
  if (!existsSync(`${PROJECT_ROOT}/${script}`)) {
    throw new AenvError('host_missing_tool', `the program file ${script} is missing`, { remedy: 'Install it again.' });
  }
  const node = `${CODE_DIRECTORY}/node`;
  return confinedArgv([node, '--disable-warning=ExperimentalWarning', `${CODE_DIRECTORY}/project/${script}`, ...args], {
    ...confinement,
    binds: [
      { from: PROJECT_ROOT, to: `${CODE_DIRECTORY}/project` },
      { from: process.execPath, to: node },
    ],
  });
}
