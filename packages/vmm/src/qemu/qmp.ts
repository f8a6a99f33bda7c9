/** Client of QEMU's machine protocol over a unix socket. Every command has a deadline; a broken stream fails them all. */
import { createConnection, type Socket } from 'node:net';
import { AenvError, isSystemError, sleep } from '@aenv/std';
import { QmpLines, type QmpMessage } from './qmp-lines.ts';

const COMMAND_TIMEOUT_MS = 10_000;
/** Between two attempts while QEMU has not made its socket yet. */
const CONNECT_INTERVAL_MS = 2;
/** Of sun_path in Linux, with its NUL. */
const MAX_SOCKET_PATH = 108;

export interface QmpConnectOptions {
  timeoutMs: number;
  /** Ends the attempt early, such as when the VMM has died. */
  signal?: AbortSignal;
}

interface Pending {
  resolve(value: unknown): void;
  reject(error: AenvError): void;
}

export class QmpClient {
  /** Such as 10.0.2. */
  readonly version: string;
  readonly #socket: Socket;
  readonly #pending = new Map<number, Pending>();
  #nextId = 1;
  #failure: AenvError | undefined;

  private constructor(socket: Socket, version: string) {
    this.#socket = socket;
    this.version = version;
  }

  /** Connects and negotiates. `timeout` when nobody listens in time, `vmm_failed` when what listens is not QEMU. */
  static async connect(path: string, { timeoutMs, signal }: QmpConnectOptions): Promise<QmpClient> {
    checkSocketPath(path);
    const end = performance.now() + timeoutMs;
    for (;;) {
      signal?.throwIfAborted();
      const left = end - performance.now();
      if (left <= 0) throw new AenvError('timeout', `QEMU did not open ${path} within ${timeoutMs} ms`);
      const socket = await openSocket(path);
      if (socket) return QmpClient.#negotiate(socket, left);
      await sleep(CONNECT_INTERVAL_MS, signal);
    }
  }

  static async #negotiate(socket: Socket, timeoutMs: number): Promise<QmpClient> {
    const lines = new QmpLines();
    try {
      const version = await greeting(socket, lines, timeoutMs);
      const client = new QmpClient(socket, version);
      client.#listen(lines);
      await client.execute('qmp_capabilities', {}, timeoutMs);
      // An idle connection does not keep the process alive; the timers of commands do.
      socket.unref();
      return client;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  get closed(): boolean {
    return this.#failure !== undefined;
  }

  /** The result of a command; `vmm_failed` when QEMU refuses it or goes away, `timeout` when it does not answer. */
  execute(command: string, args: Record<string, unknown> = {}, timeoutMs = COMMAND_TIMEOUT_MS): Promise<unknown> {
    if (this.#failure) return Promise.reject(this.#failure);
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const timer = setTimeout(() => {
      this.#pending.delete(id);
      reject(new AenvError('timeout', `QEMU did not answer ${command} within ${timeoutMs} ms`));
    }, timeoutMs);
    this.#pending.set(id, {
      resolve,
      reject: (error) => reject(new AenvError(error.code, `${command}: ${error.message}`)),
    });
    this.#socket.write(`${JSON.stringify({ execute: command, arguments: args, id })}\n`);
    return promise.finally(() => clearTimeout(timer));
  }

  close(): void {
    this.#fail('the connection was closed');
  }

  #listen(lines: QmpLines): void {
    this.#socket.on('data', (chunk: Buffer) => {
      try {
        for (const message of lines.push(chunk)) this.#receive(message);
      } catch (error) {
        this.#fail(`QEMU sent something else than QMP (${AenvError.from(error).message})`);
      }
    });
    this.#socket.on('error', (error) => this.#fail(`the connection to QEMU failed (${error.message})`));
    this.#socket.on('close', () => this.#fail('QEMU closed the connection'));
  }

  #receive(message: QmpMessage): void {
    if (message.kind !== 'return' && message.kind !== 'error') return;
    const pending = message.id === undefined ? undefined : this.#pending.get(message.id);
    // An answer nobody waits for belongs to a command that timed out.
    if (message.id === undefined || !pending) return;
    this.#pending.delete(message.id);
    if (message.kind === 'return') pending.resolve(message.value);
    else pending.reject(new AenvError('vmm_failed', message.description || message.errorClass));
  }

  #fail(message: string): void {
    if (this.#failure) return;
    const failure = new AenvError('vmm_failed', message);
    this.#failure = failure;
    this.#socket.destroy();
    for (const pending of this.#pending.values()) pending.reject(failure);
    this.#pending.clear();
  }
}

/** `config_invalid` when the kernel could not take the path; Linux cuts it silently otherwise. */
export function checkSocketPath(path: string): void {
  if (Buffer.byteLength(path) < MAX_SOCKET_PATH) return;
  throw new AenvError('config_invalid', `the path of a socket is longer than ${MAX_SOCKET_PATH - 1} bytes: ${path}`, {
    remedy: 'Choose a shorter AENV_HOME.',
  });
}

/** A connected socket, or undefined while nobody listens. */
function openSocket(path: string): Promise<Socket | undefined> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ path });
    const onError = (error: Error) => {
      if (isSystemError(error, 'ENOENT') || isSystemError(error, 'ECONNREFUSED')) resolve(undefined);
      else reject(AenvError.from(error, 'vmm_failed'));
    };
    socket.once('error', onError);
    socket.once('connect', () => {
      socket.off('error', onError);
      resolve(socket);
    });
  });
}

/** Waits for the line with which QEMU opens; its version. */
function greeting(socket: Socket, lines: QmpLines, timeoutMs: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const refuse = (what: string) => reject(new AenvError('vmm_failed', `QEMU did not greet: ${what}`));
  const timer = setTimeout(() => reject(new AenvError('timeout', 'QEMU did not greet in time')), timeoutMs);
  const onData = (chunk: Buffer) => {
    try {
      const [first] = lines.push(chunk);
      if (first?.kind === 'greeting') resolve(first.version);
      else if (first) refuse(`it sent a message of kind ${first.kind}`);
    } catch (error) {
      refuse(AenvError.from(error).message);
    }
  };
  const onClose = () => refuse('it closed the connection');
  const onError = (error: Error) => refuse(error.message);
  socket.on('data', onData).on('close', onClose).on('error', onError);
  return promise.finally(() => {
    clearTimeout(timer);
    socket.off('data', onData).off('close', onClose).off('error', onError);
  });
}
