/** `aenv pull` and `aenv template watch`: start a build, and follow one. */
import { styleText } from 'node:util';
import type { AenvClient, BuildIds, BuildInfo, BuildLogEntry } from '@aenv/client';
import { AenvError, sleep } from '@aenv/std';
import { printable } from '../output.ts';
import { bar, type StatusLine, withStatus } from '../progress.ts';
import { withClient } from '../session.ts';

const POLL_MS = 250;

export interface PullOptions {
  name?: string;
  cpu?: number;
  memory?: number;
  disk?: number;
  startCmd?: string;
  readyCmd?: string;
  probe?: number;
  detach?: boolean;
}

/** `registry/owner/python:3.12@sha256:…` → `python`; `oci:/images/debian:bookworm` → `debian`. */
export function templateNameOf(image: string): string {
  const path = image.replace(/^(oci|docker-archive):/, '').replace(/@.*$/, '');
  const leaf = path.split('/').at(-1) ?? '';
  const name = leaf
    .replace(/:.*$/, '')
    .replace(/\.tar$/, '')
    .replaceAll(/[^A-Za-z0-9_-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
  if (name !== '') return name.slice(0, 128);
  throw new AenvError('bad_request', `no name for a template can be made of ${JSON.stringify(image)}`, {
    remedy: 'Give one with --name.',
  });
}

/**
 * Succeeds when something listens on the TCP port. Needs no program in the image but its shell: the kernel's table has
 * one line for each socket (local address:port in hex, remote, state), and 0A is LISTEN.
 */
export function probeCommand(port: number): string {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  return (
    `for table in /proc/net/tcp /proc/net/tcp6; do [ -r $table ] || continue; ` +
    `while read -r _ address _ state _; do case "$address $state" in *:${hex}" 0A") exit 0;; esac; done < $table; ` +
    `done; exit 1`
  );
}

/** A line that the server writes while it downloads: `layer sha256:4f4f…: 1048576 of 29536812 bytes`. */
function parseProgress({ message }: BuildLogEntry): { label: string; done: number; total: number } | undefined {
  const match = /^(.+): (\d+) of (\d+) bytes$/.exec(message);
  if (!match) return undefined;
  return { label: match[1] ?? '', done: Number(match[2]), total: Number(match[3]) };
}

function showEntry(line: StatusLine, entry: BuildLogEntry): void {
  const progress = parseProgress(entry);
  if (progress === undefined) {
    line.print(
      `${styleText('dim', entry.timestamp.slice(11, 19), { stream: process.stderr })} ${printable(entry.message)}`,
    );
    line.set(undefined);
  } else if (progress.done < progress.total) {
    line.set(`${printable(progress.label)} ${bar(progress.done, progress.total)}`);
  } else {
    line.print(`${printable(progress.label)} ${bar(progress.done, progress.total)}`);
    line.set(undefined);
  }
}

/** Prints the log of a build until it ends; a failed one is a `template_build_failed` error with its reason. */
async function followBuild(client: AenvClient, ids: BuildIds): Promise<void> {
  const info = await withStatus('building', async (line) => {
    let offset = 0;
    for (;;) {
      const info = await client.templates.buildStatus(ids, offset);
      offset += info.logEntries.length;
      for (const entry of info.logEntries) showEntry(line, entry);
      const ended = info.status === 'ready' || info.status === 'error';
      if (ended && info.logEntries.length === 0) return info;
      if (info.logEntries.length === 0) await sleep(POLL_MS);
    }
  });
  if (info.status === 'error') throw buildError(info);
}

function buildError({ reason }: BuildInfo): AenvError {
  const step = reason?.step === undefined ? '' : ` (step ${reason.step})`;
  return new AenvError('template_build_failed', `the build failed: ${reason?.message ?? 'without a reason'}${step}`);
}

export async function pull(image: string, options: PullOptions): Promise<void> {
  const name = options.name ?? templateNameOf(image);
  const readyCmd = options.probe === undefined ? options.readyCmd : probeCommand(options.probe);
  await withClient(async (client) => {
    const ids = await client.templates.request({ name, cpuCount: options.cpu, memoryMB: options.memory });
    await client.templates.startBuild(ids, {
      fromImage: image,
      startCmd: options.startCmd,
      readyCmd,
      diskSizeMB: options.disk,
    });
    if (options.detach) {
      process.stdout.write(`${ids.templateID}\n`);
      process.stderr.write(`The build goes on. Follow it: aenv template watch ${name}\n`);
      return;
    }
    await followBuild(client, ids);
    process.stdout.write(`Template ${name} (${ids.templateID}) is ready. Start it: aenv start ${name}\n`);
  });
}

export async function watchTemplate(name: string): Promise<void> {
  await withClient(async (client) => {
    const { templateID, builds } = await client.templates.get(name);
    const newest = builds[0];
    if (!newest) throw new AenvError('build_not_found', `template ${name} has no build`);
    await followBuild(client, { templateID, buildID: newest.buildID });
    process.stdout.write(`Template ${name} (${templateID}) is ready\n`);
  });
}
