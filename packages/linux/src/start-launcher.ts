/** The launcher of an AENV_HOME: the one that runs, or a new one. */
import { spawn } from 'node:child_process';
import { open } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { AenvError, type Logger, sleep } from '@aenv/std';
import { type ConnectedLauncher, connectLauncher } from './client.ts';
import { findProgram } from './commands.ts';
import { Home } from './home.ts';
import { readTail } from './launcher/log-file.ts';
import { launcherSocket } from './launcher/paths.ts';
import { makeRunDirectories } from './launcher/run-directories.ts';

const MAIN = fileURLToPath(new URL('./launcher/main.ts', import.meta.url));
const START_DEADLINE_MS = 20_000;
const RETRY_MS = 20;
/** Exit code of flock when another launcher of this home holds the lock. */
const LOCKED = 75;

export interface EnsureOptions {
  /** AENV_HOME; made when it is missing. */
  home: string;
  logger: Logger;
}

/**
 * Connects to the launcher of `home`; starts one first when none answers. The launcher goes on when this process ends, as
 * long as there are VMs. Its messages go to `$AENV_HOME/launcher.log`.
 */
export async function startOrConnect({ home, logger }: EnsureOptions): Promise<ConnectedLauncher> {
  const { root } = await Home.open(home);
  const socketPath = launcherSocket(root);
  const end = performance.now() + START_DEADLINE_MS;
  let starting = false;
  let failure: unknown;
  while (performance.now() < end) {
    const launcher = await tryConnect(socketPath);
    if (launcher) return launcher;
    if (failure) throw failure;
    if (!starting) {
      starting = true;
      start(root, socketPath, logger)
        .catch((error) => {
          failure = error;
        })
        .finally(() => {
          starting = false;
        });
    }
    await sleep(RETRY_MS);
  }
  throw new AenvError('timeout', `the launcher did not answer within ${START_DEADLINE_MS} ms`, {
    remedy: `Look into ${root}/launcher.log.`,
  });
}

/** A launcher that is about to end may still accept a connection, so it has to answer a request. */
async function tryConnect(socketPath: string): Promise<ConnectedLauncher | undefined> {
  let launcher: ConnectedLauncher | undefined;
  try {
    launcher = await connectLauncher(socketPath);
    await launcher.listVms();
    return launcher;
  } catch {
    await launcher?.close();
    return undefined;
  }
}

/**
 * Runs a launcher in a session of its own. Resolves when it has ended although it had started well, or when another one
 * holds the lock; rejects when it could not start. The lock belongs to the process, so it is free when the process is gone.
 */
async function start(root: string, socketPath: string, logger: Logger): Promise<void> {
  await makeRunDirectories();
  await using log = await open(`${root}/launcher.log`, 'a+', 0o600);
  const before = (await log.stat()).size;
  const lock = ['--nonblock', '--no-fork', `--conflict-exit-code=${LOCKED}`, socketPath.replace(/\.sock$/, '.lock')];
  const child = spawn(findProgram('flock'), [...lock, process.execPath, MAIN, root, socketPath], {
    cwd: '/',
    stdio: ['ignore', log.fd, log.fd],
    detached: true,
  });
  child.unref();
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', resolve);
  });
  if (code === 0 || code === LOCKED) return;
  const { size } = await log.stat();
  const said = (await readTail(log, Math.min(size - before, 2000))).toString().trim();
  logger.error({ code, said }, 'the launcher ended');
  throw launcherFailure(said, root);
}

/** The launcher's own error, from the last line of its log. */
function launcherFailure(said: string, root: string): AenvError {
  try {
    const { err } = JSON.parse(said.split('\n').at(-1) ?? '');
    if (typeof err.message === 'string') return new AenvError('host_unsupported', err.message);
  } catch {
    // It ended without a word of its own.
  }
  return new AenvError('internal', 'the launcher could not start', { remedy: `Look into ${root}/launcher.log.` });
}
