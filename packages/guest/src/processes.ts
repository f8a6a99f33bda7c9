/** Processes of a sandbox: `process.Process` of the envd protocol (spec/envd/process/process.proto). */
import { envd } from '@aenv/protocol';
import { AenvError, deferred } from '@aenv/std';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { type CallOptions, createClient } from '@connectrpc/connect';
import { type Connection, KEEPALIVE_SECONDS } from './connection.ts';
import { errorFromCall } from './errors.ts';
import { exitOf, type ProcessExit } from './exit.ts';

export interface TerminalSize {
  cols: number;
  rows: number;
}

/** Where output came from; a terminal has only one stream. */
export type OutputStream = 'stdout' | 'stderr' | 'pty';

/** Called with each piece in order; the next one is not read before a returned promise settles. */
export type OutputHandler = (stream: OutputStream, bytes: Uint8Array) => void | Promise<void>;

export interface WatchOptions {
  onOutput?: OutputHandler;
  user?: string;
  /** Ends the watching; the process goes on. */
  signal?: AbortSignal;
}

export interface StartOptions extends WatchOptions {
  cmd: string;
  args?: string[];
  envs?: Record<string, string>;
  /** Absent: the sandbox's default directory. */
  cwd?: string;
  /** A name by which others find the process. */
  tag?: string;
  /** Present: the process gets a terminal of this size instead of pipes. */
  pty?: TerminalSize;
  /** False (the default): its input is /dev/null. A terminal always takes input. */
  stdin?: boolean;
  /** Milliseconds until aenvd kills it. */
  timeoutMs?: number;
}

export interface GuestProcess {
  /** 0 when the command could not be started at all; `exit` says why. */
  pid: number;
  /** Rejects when the stream is lost before the process ended. */
  exit: Promise<ProcessExit>;
  sendInput(bytes: Uint8Array): Promise<void>;
  /** The process reads end of file. */
  closeStdin(): Promise<void>;
  resize(size: TerminalSize): Promise<void>;
  /** Signals the whole process group; false when it has already ended. */
  kill(signal?: 'SIGKILL' | 'SIGTERM'): Promise<boolean>;
  /** Ends the watching; the process goes on. */
  disconnect(): void;
}

export interface GuestProcessInfo {
  pid: number;
  tag?: string;
  cmd: string;
  args: string[];
  cwd?: string;
  envs: Record<string, string>;
}

export interface GuestProcesses {
  /** Resolves when the process runs (or could not be started). */
  start(options: StartOptions): Promise<GuestProcess>;
  /** Watches a process that runs already: output from now on. */
  connect(process: number | string, options?: WatchOptions & { pty?: boolean }): Promise<GuestProcess>;
  list(): Promise<GuestProcessInfo[]>;
}

type Event = envd.process.ProcessEvent['event'];
type Selector = MessageInitShape<typeof envd.process.ProcessSelectorSchema>;

interface Watched {
  pid: number;
  exit: Promise<ProcessExit>;
}

/** Reads the stream up to its first event, and the rest in the background. */
async function watch(
  stream: AsyncIterable<{ event?: envd.process.ProcessEvent }>,
  onOutput: OutputHandler | undefined,
): Promise<Watched> {
  const started = deferred<number>();
  const ended = deferred<ProcessExit>();
  ended.promise.catch(() => {});
  const take = async (event: Event): Promise<void> => {
    if (event.case === 'start') started.resolve(event.value.pid);
    if (event.case === 'data' && event.value.output.case) {
      await onOutput?.(event.value.output.case, event.value.output.value);
    }
    if (event.case === 'end') {
      started.resolve(0);
      ended.resolve(exitOf(event.value));
    }
  };
  const readAll = async (): Promise<void> => {
    for await (const message of stream) if (message.event) await take(message.event.event);
    throw new AenvError('guest_unreachable', 'the stream ended before the process did');
  };
  readAll().catch((reason: unknown) => {
    const error = errorFromCall(reason);
    started.reject(error);
    ended.reject(error);
  });
  return { pid: await started.promise, exit: ended.promise };
}

export function guestProcesses(connection: Connection): GuestProcesses {
  const client = createClient(envd.process.Process, connection.transport);

  function callOptions(user = connection.user, signal?: AbortSignal): CallOptions {
    const headers: Record<string, string> = { 'keepalive-ping-interval': String(KEEPALIVE_SECONDS) };
    if (user !== undefined) headers.authorization = `Basic ${Buffer.from(`${user}:`).toString('base64')}`;
    return { headers, signal };
  }

  async function call<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw errorFromCall(error);
    }
  }

  function handle(watched: Watched, pty: boolean, selector: Selector, stop: AbortController): GuestProcess {
    const input = (bytes: Uint8Array) => ({ case: pty ? ('pty' as const) : ('stdin' as const), value: bytes });
    return {
      ...watched,
      sendInput: (bytes) =>
        call(async () => void (await client.sendInput({ process: selector, input: { input: input(bytes) } }))),
      closeStdin: () => call(async () => void (await client.closeStdin({ process: selector }))),
      resize: (size) => call(async () => void (await client.update({ process: selector, pty: { size } }))),
      kill: (signal = 'SIGKILL') => kill(selector, signal),
      disconnect: () => stop.abort(),
    };
  }

  async function kill(selector: Selector, signal: 'SIGKILL' | 'SIGTERM'): Promise<boolean> {
    try {
      const { SIGKILL, SIGTERM } = envd.process.Signal;
      await client.sendSignal({ process: selector, signal: signal === 'SIGKILL' ? SIGKILL : SIGTERM });
      return true;
    } catch (reason) {
      const error = errorFromCall(reason);
      if (error.code === 'not_found') return false;
      throw error;
    }
  }

  const byPid = (pid: number): Selector => ({ selector: { case: 'pid', value: pid } });

  return {
    async start({ cmd, args, envs, cwd, pty, tag, stdin = false, timeoutMs, user, signal, onOutput }) {
      const stop = new AbortController();
      const request = create(envd.process.StartRequestSchema, {
        process: { cmd, args, envs, cwd },
        pty: pty && { size: pty },
        tag,
        stdin,
      });
      const options = { ...callOptions(user, linked(stop, signal)), timeoutMs };
      const watched = await watch(client.start(request, options), onOutput);
      return handle(watched, pty !== undefined, byPid(watched.pid), stop);
    },
    async connect(process, { user, signal, onOutput, pty = false } = {}) {
      const stop = new AbortController();
      const selector: Selector =
        typeof process === 'number' ? byPid(process) : { selector: { case: 'tag', value: process } };
      const stream = client.connect({ process: selector }, callOptions(user, linked(stop, signal)));
      return handle(await watch(stream, onOutput), pty, selector, stop);
    },
    list: () =>
      call(async () => {
        const { processes } = await client.list({});
        return processes.map(({ pid, tag, config }) => ({
          pid,
          tag,
          cmd: config?.cmd ?? '',
          args: config?.args ?? [],
          cwd: config?.cwd,
          envs: config?.envs ?? {},
        }));
      }),
  };
}

function linked(stop: AbortController, signal: AbortSignal | undefined): AbortSignal {
  return signal ? AbortSignal.any([stop.signal, signal]) : stop.signal;
}
