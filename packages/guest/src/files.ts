/** Files of a sandbox: contents over HTTP (/files), the rest through `filesystem.Filesystem` (spec/envd/filesystem). */
import type { Readable } from 'node:stream';
import { envd } from '@aenv/protocol';
import { AenvError, deferred } from '@aenv/std';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { createClient } from '@connectrpc/connect';
import { type Connection, KEEPALIVE_SECONDS } from './connection.ts';
import { errorFromCall } from './errors.ts';

export type FileKind = 'file' | 'directory' | 'symlink' | 'other';

export interface GuestFileInfo {
  name: string;
  path: string;
  /** Of a symbolic link: the kind of what it points to; `symlink` when that is missing. */
  kind: FileKind;
  /** Bytes. */
  size: number;
  /** Permission bits. */
  mode: number;
  permissions: string;
  owner: string;
  group: string;
  modified: Date | undefined;
  symlinkTarget: string | undefined;
}

export interface FileAccess {
  user?: string;
  signal?: AbortSignal;
}

export interface ReadOptions extends FileAccess {
  /** Skip this many bytes. */
  offset?: number;
}

export interface FileContent {
  /** Bytes; undefined when the guest cannot tell beforehand (files in /proc). */
  size: number | undefined;
  stream: Readable;
}

export type WatchEventKind = 'create' | 'write' | 'remove' | 'rename' | 'chmod';

export interface WatchEvent {
  /** Relative to the watched directory. */
  name: string;
  kind: WatchEventKind;
}

export interface GuestFiles {
  read(path: string, options?: ReadOptions): Promise<FileContent>;
  /** For small text files. */
  readText(path: string, options?: FileAccess): Promise<string>;
  /** Makes directories above it; replaces what is there. A stream is sent as it comes. */
  write(path: string, content: string | Uint8Array | Readable, options?: FileAccess & { size?: number }): Promise<void>;
  stat(path: string, options?: FileAccess): Promise<GuestFileInfo>;
  /** Entries in the order of their names; `depth` 1 (the default) is the directory's own. */
  list(path: string, options?: FileAccess & { depth?: number }): Promise<GuestFileInfo[]>;
  /** False when it is there already. */
  makeDir(path: string, options?: FileAccess): Promise<boolean>;
  move(from: string, to: string, options?: FileAccess): Promise<GuestFileInfo>;
  /** Removes a file or a whole tree; succeeds when there is none. */
  remove(path: string, options?: FileAccess): Promise<void>;
  /** Resolves when the watch is set up. `done` resolves after `signal` is aborted and rejects when the stream is lost. */
  watch(
    path: string,
    onEvent: (event: WatchEvent) => void,
    options?: FileAccess & { recursive?: boolean },
  ): Promise<{ done: Promise<void> }>;
}

const KINDS: Record<number, FileKind> = {
  [envd.filesystem.FileType.FILE]: 'file',
  [envd.filesystem.FileType.DIRECTORY]: 'directory',
  [envd.filesystem.FileType.SYMLINK]: 'symlink',
};

const EVENT_KINDS: Record<number, WatchEventKind> = {
  [envd.filesystem.EventType.CREATE]: 'create',
  [envd.filesystem.EventType.WRITE]: 'write',
  [envd.filesystem.EventType.REMOVE]: 'remove',
  [envd.filesystem.EventType.RENAME]: 'rename',
  [envd.filesystem.EventType.CHMOD]: 'chmod',
};

function infoOf(entry: envd.filesystem.EntryInfo | undefined): GuestFileInfo {
  if (!entry) throw new AenvError('internal', 'the guest daemon answered without the entry');
  return {
    name: entry.name,
    path: entry.path,
    kind: KINDS[entry.type] ?? 'other',
    size: Number(entry.size),
    mode: entry.mode,
    permissions: entry.permissions,
    owner: entry.owner,
    group: entry.group,
    modified: entry.modifiedTime && timestampDate(entry.modifiedTime),
    symlinkTarget: entry.symlinkTarget,
  };
}

export function guestFiles(connection: Connection): GuestFiles {
  const client = createClient(envd.filesystem.Filesystem, connection.transport);
  const userOf = (options?: FileAccess): string | undefined => options?.user ?? connection.user;

  function callOptions(options?: FileAccess): { headers: Record<string, string>; signal?: AbortSignal } {
    const user = userOf(options);
    const headers: Record<string, string> = { 'keepalive-ping-interval': String(KEEPALIVE_SECONDS) };
    if (user !== undefined) headers.authorization = `Basic ${Buffer.from(`${user}:`).toString('base64')}`;
    return { headers, signal: options?.signal };
  }

  async function call<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw errorFromCall(error);
    }
  }

  async function read(path: string, options: ReadOptions = {}): Promise<FileContent> {
    const response = await connection.http({
      method: 'GET',
      path: '/files',
      query: { path, username: userOf(options) },
      headers: options.offset ? { range: `bytes=${options.offset}-` } : {},
      signal: options.signal,
    });
    const length = response.headers['content-length'];
    return { size: length === undefined ? undefined : Number(length), stream: response.body };
  }

  return {
    read,
    async readText(path, options) {
      const { stream } = await read(path, options);
      const chunks: Uint8Array[] = [];
      for await (const chunk of stream) chunks.push(chunk);
      return Buffer.concat(chunks).toString('utf8');
    },
    async write(path, content, options = {}) {
      const size = typeof content === 'string' || content instanceof Uint8Array ? undefined : options.size;
      const response = await connection.http({
        method: 'POST',
        path: '/files',
        query: { path, username: userOf(options) },
        headers: {
          'content-type': 'application/octet-stream',
          ...(size === undefined ? {} : { 'content-length': String(size) }),
        },
        body: content,
        signal: options.signal,
        // The answer comes after the last byte, however long that takes.
        headersTimeoutMs: 0,
      });
      await response.body.dump();
    },
    stat: (path, options) => call(async () => infoOf((await client.stat({ path }, callOptions(options))).entry)),
    list: (path, options) =>
      call(async () => {
        const { entries } = await client.listDir({ path, depth: options?.depth ?? 1 }, callOptions(options));
        return entries.map(infoOf);
      }),
    async makeDir(path, options) {
      try {
        await call(() => client.makeDir({ path }, callOptions(options)));
        return true;
      } catch (error) {
        if (error instanceof AenvError && error.code === 'conflict') return false;
        throw error;
      }
    },
    move: (source, destination, options) =>
      call(async () => infoOf((await client.move({ source, destination }, callOptions(options))).entry)),
    remove: (path, options) => call(async () => void (await client.remove({ path }, callOptions(options)))),
    async watch(path, onEvent, options) {
      const ready = deferred<void>();
      const request = { path, recursive: options?.recursive ?? false };
      const readAll = async (): Promise<void> => {
        for await (const { event } of client.watchDir(request, callOptions(options))) {
          if (event.case === 'start') ready.resolve();
          const kind = event.case === 'filesystem' ? EVENT_KINDS[event.value.type] : undefined;
          if (event.case === 'filesystem' && kind) onEvent({ name: event.value.name, kind });
        }
        throw new AenvError('guest_unreachable', 'the stream of file events ended');
      };
      const done = readAll().catch((reason: unknown) => {
        if (!options?.signal?.aborted) throw errorFromCall(reason);
      });
      done.then(ready.resolve, ready.reject);
      await ready.promise;
      return { done };
    },
  };
}
