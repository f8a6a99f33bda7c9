/** A tar stream becomes an ext4 file system in a raw, sparse file: `mke2fs -d -` of e2fsprogs ≥ 1.47.1. */
import { open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AenvError } from '@aenv/std';
import { type AttributeList, setAttributes } from './attributes.ts';
import { splitDigest } from './digest.ts';
import type { TreeTotals } from './flatten.ts';
import { ownedName, removeAbandoned } from './owned-files.ts';

export interface ToolRun {
  stdin: AsyncIterable<Uint8Array>;
  env: Record<string, string>;
  signal?: AbortSignal;
}

export interface ToolOutcome {
  /** Null when a signal ended the program. */
  code: number | null;
  stderr: string;
}

/** Runs a system program with an argument array; rejects when the program is missing or `stdin` fails. */
export type ToolRunner = (name: string, args: string[], run: ToolRun) => Promise<ToolOutcome>;

export interface DiskRequest {
  /** File to make; it appears in one step when it is complete. */
  path: string;
  sizeMb: number;
  totals: TreeTotals;
  /** Digest that the file system's identity derives from, so that equal images give equal disks. */
  identity: string;
  tar: AsyncIterable<Uint8Array>;
  attributes: AttributeList;
  runTool: ToolRunner;
  signal?: AbortSignal;
}

const MIB = 1 << 20;
/** One inode per 8 KiB: images of interpreted languages are full of small files. */
const BYTES_PER_INODE = 8192;
/** Share of the disk that the file system needs for itself, plus its journal; an estimate for a friendly message. */
const OVERHEAD = 0.05;
const JOURNAL_MB = 4;
/** Only for the file system's own times: SOURCE_DATE_EPOCH would cut those of the files as well. */
const ENVIRONMENT = { E2FSPROGS_FAKE_TIME: '1' };

/** Makes the disk; returns the bytes that the file really occupies. */
export async function makeDisk(request: DiskRequest): Promise<number> {
  checkFits(request);
  await removeAbandoned(dirname(request.path));
  const temporary = await ownedName(request.path);
  try {
    await makeSparseFile(temporary, request.sizeMb * MIB);
    await runMke2fs(temporary, request);
    await setAttributes(temporary, request.attributes, request.runTool, { env: ENVIRONMENT, signal: request.signal });
    await syncFile(temporary);
    await rename(temporary, request.path);
  } finally {
    await rm(temporary, { force: true });
  }
  return (await stat(request.path)).blocks * 512;
}

function checkFits({ sizeMb, totals }: DiskRequest): void {
  const inodeBytes = totals.inodes * 256;
  const neededMb = Math.ceil((totals.blockBytes + inodeBytes) / MIB / (1 - OVERHEAD)) + JOURNAL_MB;
  if (neededMb > sizeMb) throw tooSmall(sizeMb, `about ${neededMb} MiB`);
}

function tooSmall(sizeMb: number, needed: string): AenvError {
  return new AenvError('bad_request', `the image needs ${needed}, but the disk has ${sizeMb} MiB`, {
    remedy: 'Ask for a larger disk.',
  });
}

async function makeSparseFile(path: string, bytes: number): Promise<void> {
  await using file = await open(path, 'wx', 0o600);
  await file.truncate(bytes);
}

async function syncFile(path: string): Promise<void> {
  await using file = await open(path, 'r');
  await file.sync();
}

async function runMke2fs(path: string, request: DiskRequest): Promise<void> {
  const { sizeMb, totals, identity, tar, runTool, signal } = request;
  const uuid = uuidOf(identity);
  const inodes = Math.max(Math.ceil((sizeMb * MIB) / BYTES_PER_INODE), totals.inodes + 1024);
  // Nothing is left for the guest's kernel to initialise in the background: that would dirty every sandbox's disk. The
  // journal lies in a hole of the sparse file, which is as good as zeros written.
  const extended = `hash_seed=${uuid},lazy_itable_init=0,lazy_journal_init=1,root_owner=0:0`;
  const args = [
    '-q', '-F', '-t', 'ext4', '-b', '4096', '-m', '0', '-N', String(inodes), '-U', uuid, '-E', extended, '-d', '-', path,
  ]; // biome-ignore format: option and value belong together
  const { code, stderr } = await runTool('mke2fs', args, { stdin: tar, env: ENVIRONMENT, signal });
  if (code !== 0) throw mke2fsError(stderr, code, sizeMb);
}

function mke2fsError(stderr: string, code: number | null, sizeMb: number): AenvError {
  if (/could not allocate|no free space|no space left in|inode table full/i.test(stderr)) {
    return tooSmall(sizeMb, 'more space than that');
  }
  if (/no space left on device|disk quota exceeded/i.test(stderr)) {
    return new AenvError('disk_full', 'the disk is full', { remedy: 'Free space under AENV_HOME, then try again.' });
  }
  // Older versions look for a directory called “-”, or were built without libarchive.
  if (/libarchive|while (?:opening|trying to|changing).*"?-"?|populating file system.*No such file/is.test(stderr)) {
    return new AenvError('host_missing_tool', 'this mke2fs cannot read a tar stream', {
      remedy: 'Install e2fsprogs 1.47.1 or newer and libarchive13 (Debian 12: from bookworm-backports).',
    });
  }
  return new AenvError('internal', `mke2fs failed (exit code ${code}): ${stderr.trim().slice(0, 2000)}`);
}

/** The first 16 bytes of the digest in the form of a version 8 UUID (RFC 9562: made by the application). */
function uuidOf(digest: string): string {
  const { hex } = splitDigest(digest);
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
