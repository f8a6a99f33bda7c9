/** `aenv upload`: a file or a directory into a sandbox. */
import { createReadStream } from 'node:fs';
import { lstat, opendir, stat } from 'node:fs/promises';
import { basename, join, posix, resolve } from 'node:path';
import { Transform } from 'node:stream';
import type { GuestClient } from '@aenv/guest';
import { AenvError, isSystemError, Semaphore } from '@aenv/std';
import { formatBytes, printable } from '../output.ts';
import { transferStatus } from '../progress.ts';
import { withRunningGuest } from '../session.ts';

/** Files sent at the same time. */
const AT_ONCE = 4;

interface SourceFile {
  local: string;
  remote: string;
  size: number;
  executable: boolean;
}

interface Source {
  files: SourceFile[];
  directories: string[];
  /** Symbolic links, sockets and the like. */
  skipped: string[];
}

async function scan(local: string, remote: string, found: Source): Promise<void> {
  const info = await lstat(local);
  if (info.isFile()) {
    found.files.push({ local, remote, size: info.size, executable: (info.mode & 0o100) !== 0 });
  } else if (info.isDirectory()) {
    found.directories.push(remote);
    for await (const entry of await opendir(local)) {
      await scan(join(local, entry.name), posix.join(remote, entry.name), found);
    }
  } else {
    found.skipped.push(local);
  }
}

/** `remote` itself, or a place in it where it names a directory (ends in a slash, or is one). */
async function destination(guest: GuestClient, local: string, remote: string): Promise<string> {
  const inside = posix.join(remote, basename(resolve(local)));
  if (remote.endsWith('/')) return inside;
  try {
    return (await guest.files.stat(remote)).kind === 'directory' ? inside : remote;
  } catch (error) {
    if (error instanceof AenvError && error.code === 'not_found') return remote;
    throw error;
  }
}

async function checkSource(local: string): Promise<void> {
  try {
    await stat(local);
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new AenvError('bad_request', `${local} cannot be read: ${error.code}`, { remedy: 'Check the path.' });
  }
}

async function send(guest: GuestClient, file: SourceFile, onBytes: (count: number) => void): Promise<void> {
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      onBytes(chunk.length);
      done(undefined, chunk);
    },
  });
  const source = createReadStream(file.local);
  source.on('error', (error) => counted.destroy(error));
  await guest.files.write(file.remote, source.pipe(counted));
}

/** Uploaded files are 0644; those that may be executed here may be executed there. */
async function keepExecutable(guest: GuestClient, files: SourceFile[]): Promise<void> {
  const paths = files.filter(({ executable }) => executable).map(({ remote }) => remote);
  for (let start = 0; start < paths.length; start += 500) {
    const { exit } = await guest.processes.start({
      cmd: 'chmod',
      args: ['a+x', '--', ...paths.slice(start, start + 500)],
      cwd: '/',
    });
    const { exitCode } = await exit;
    if (exitCode !== 0) process.stderr.write('warning: the files could not be made executable (chmod failed)\n');
  }
}

export async function upload(id: string, local: string, remote: string, options: { user?: string }): Promise<void> {
  await checkSource(local);
  const sent = await withRunningGuest(id, options.user, async (guest) => {
    const source: Source = { files: [], directories: [], skipped: [] };
    await scan(local, await destination(guest, local, remote), source);
    if (source.files.length === 0 && source.directories.length === 0) {
      throw new AenvError('bad_request', `${local} is neither a file nor a directory`);
    }
    for (const path of source.skipped) process.stderr.write(`skipped (not a regular file): ${printable(path)}\n`);
    const total = source.files.reduce((sum, { size }) => sum + size, 0);
    const status = transferStatus(basename(resolve(local)), total);
    try {
      for (const directory of source.directories) await guest.files.makeDir(directory);
      const limit = new Semaphore(AT_ONCE);
      await Promise.all(source.files.map((file) => limit.run(() => send(guest, file, status.add))));
    } finally {
      status.end();
    }
    await keepExecutable(guest, source.files);
    return { count: source.files.length, total };
  });
  process.stdout.write(`Uploaded ${sent.count} file${sent.count === 1 ? '' : 's'}, ${formatBytes(sent.total)}\n`);
}
