/**
 * One server per AENV_HOME. The lock is an abstract unix socket named after the directory's inode: the kernel drops it
 * with the process, however it ends, so there is no stale lock to clean up and two names of one directory are the same.
 */
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { AenvError, isSystemError } from '@aenv/std';

export interface HomeLock {
  release(): Promise<void>;
}

/** `conflict` when another server holds it, with that server's process id. */
export async function lockHome(home: string): Promise<HomeLock> {
  await mkdir(home, { recursive: true, mode: 0o711 });
  const { dev, ino } = await stat(home, { bigint: true });
  const server = createServer((socket) => socket.destroy());
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen(`\0aenv-home-${dev}-${ino}`, resolve);
  const pidFile = join(home, 'server.pid');
  try {
    await promise;
  } catch (error) {
    throw isSystemError(error, 'EADDRINUSE') ? await heldError(home, pidFile) : error;
  }
  await writeFile(pidFile, `${process.pid}\n`);
  return {
    async release() {
      await new Promise((closed) => server.close(closed));
    },
  };
}

async function heldError(home: string, pidFile: string): Promise<AenvError> {
  const pid = (await readFile(pidFile, 'utf8').catch(() => '')).trim();
  return new AenvError('conflict', `another server${pid && ` (process ${pid})`} already uses ${home}`, {
    remedy: 'Stop it first, or give this one a directory of its own: AENV_HOME=/other/directory.',
  });
}
