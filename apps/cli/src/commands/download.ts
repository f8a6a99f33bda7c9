/** `aenv download`: a file or a directory out of a sandbox. */
import { access } from 'node:fs/promises';
import { dirname, join, posix, resolve } from 'node:path';
import { Transform } from 'node:stream';
import type { GuestClient, GuestFileInfo } from '@aenv/guest';
import { AenvError } from '@aenv/std';
import { checkedName, kindOf, makeDirectory, writeFile } from '../local-tree.ts';
import { formatBytes, printable } from '../output.ts';
import { transferStatus } from '../progress.ts';
import { withRunningGuest } from '../session.ts';

interface Transfer {
  guest: GuestClient;
  force: boolean;
  onBytes: (count: number) => void;
  files: number;
  bytes: number;
}

async function fetchFile(transfer: Transfer, remote: string, mode: number, local: string): Promise<void> {
  const { stream } = await transfer.guest.files.read(remote);
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      transfer.bytes += chunk.length;
      transfer.onBytes(chunk.length);
      done(undefined, chunk);
    },
  });
  stream.on('error', (error) => counted.destroy(error));
  await writeFile(local, stream.pipe(counted), { mode, force: transfer.force });
  transfer.files += 1;
}

/** Regular files and directories only: a link could point out of the tree, here as well as there. */
async function fetchTree(transfer: Transfer, remote: string, local: string): Promise<void> {
  await makeDirectory(local);
  for (const entry of await transfer.guest.files.list(remote)) {
    const name = checkedName(entry.name);
    const from = posix.join(remote, name);
    const to = join(local, name);
    if (entry.symlinkTarget !== undefined || entry.kind === 'symlink' || entry.kind === 'other') {
      process.stderr.write(`skipped (not a regular file): ${printable(from)}\n`);
    } else if (entry.kind === 'directory') {
      await fetchTree(transfer, from, to);
    } else {
      await fetchFile(transfer, from, entry.mode, to);
    }
  }
}

/** `local` itself, or a place in it where it is a directory (or ends in a slash). */
async function destination(local: string | undefined, info: GuestFileInfo): Promise<string> {
  const inside = (directory: string) => join(directory, checkedName(posix.basename(info.path)));
  if (local === undefined) return inside('.');
  return local.endsWith('/') || (await kindOf(local)) === 'directory' ? inside(local) : local;
}

async function checkTarget(local: string): Promise<void> {
  const parent = dirname(resolve(local));
  await access(parent).catch(() => {
    throw new AenvError('bad_request', `the directory ${parent} does not exist`, { remedy: 'Make it first.' });
  });
}

export async function download(
  id: string,
  remote: string,
  local: string | undefined,
  options: { user?: string; force?: boolean },
): Promise<void> {
  await withRunningGuest(id, options.user, async (guest) => {
    const info = await guest.files.stat(remote);
    const target = await destination(local, info);
    await checkTarget(target);
    const status = transferStatus(posix.basename(remote), info.kind === 'file' ? info.size : undefined);
    const transfer: Transfer = { guest, force: options.force ?? false, onBytes: status.add, files: 0, bytes: 0 };
    try {
      if (info.kind === 'directory') await fetchTree(transfer, info.path, target);
      else await fetchFile(transfer, remote, info.mode, target);
    } finally {
      status.end();
    }
    const count = `${transfer.files} file${transfer.files === 1 ? '' : 's'}`;
    process.stdout.write(`Downloaded ${count}, ${formatBytes(transfer.bytes)}, to ${target}\n`);
  });
}
