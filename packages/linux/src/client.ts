/** The client's side of the launcher's socket: one connection that fails as a whole when it breaks. */
import { connect, type Socket } from 'node:net';
import { AenvError, isSystemError } from '@aenv/std';
import { encode, LineSplitter, type Message, parseMessage } from './launcher/wire.ts';
import type { JobOptions, JobRequest, JobResult, Launcher, VmExit } from './launcher-api.ts';

interface Pending {
  resolve(result: unknown): void;
  reject(error: AenvError): void;
  onLine?: (line: string) => void;
}

/** Connects to a launcher that runs; `internal` when none listens there. */
export function connectLauncher(socketPath: string): Promise<ConnectedLauncher> {
  const socket = connect(socketPath);
  return new Promise((resolve, reject) => {
    socket.once('error', (error) => reject(connectError(socketPath, error)));
    socket.once('connect', () => {
      socket.removeAllListeners('error');
      resolve(new ConnectedLauncher(socket));
    });
  });
}

function connectError(path: string, cause: Error): AenvError {
  const nobody = isSystemError(cause, 'ENOENT') || isSystemError(cause, 'ECONNREFUSED');
  const message = nobody ? `no launcher listens on ${path}` : `cannot connect to ${path}: ${cause.message}`;
  return new AenvError('internal', message, { cause });
}

export class ConnectedLauncher implements Launcher {
  readonly #socket: Socket;
  readonly #pending = new Map<number, Pending>();
  readonly #listeners = new Set<(exit: VmExit) => void>();
  readonly #closed = Promise.withResolvers<void>();
  #nextId = 1;

  constructor(socket: Socket) {
    this.#socket = socket;
    const splitter = new LineSplitter();
    socket.on('data', (chunk: Buffer) => {
      try {
        for (const line of splitter.push(chunk)) this.#take(parseMessage(line));
      } catch (error) {
        socket.destroy(AenvError.from(error));
      }
    });
    // 'close' follows.
    socket.on('error', () => {});
    socket.on('close', () => this.#fail());
  }

  /** Resolves when the connection is gone, whoever closed it. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  get isLost(): boolean {
    return this.#socket.destroyed;
  }

  createSlot: Launcher['createSlot'] = (policy) => this.#call('createSlot', { policy });
  setPolicy: Launcher['setPolicy'] = (slot, policy) => this.#call('setPolicy', { slot, policy });
  destroySlot: Launcher['destroySlot'] = (slot) => this.#call('destroySlot', { slot });
  listSlots: Launcher['listSlots'] = () => this.#call('listSlots', {});
  spawnVm: Launcher['spawnVm'] = (request) => this.#call('spawnVm', request);
  killVm: Launcher['killVm'] = (id, graceMs) => this.#call('killVm', { id, graceMs });
  listVms: Launcher['listVms'] = () => this.#call('listVms', {});
  giveFile: Launcher['giveFile'] = (id, path) => this.#call('giveFile', { id, path });
  dumpMemory: Launcher['dumpMemory'] = (id, memoryFile, file, onRead) =>
    this.#call('dumpMemory', { id, memoryFile, file }, onRead);
  patchMemory: Launcher['patchMemory'] = (id, memoryFile, file) => this.#call('patchMemory', { id, memoryFile, file });
  leftovers: Launcher['leftovers'] = (remove) => this.#call('leftovers', { remove });
  seal: Launcher['seal'] = (path) => this.#call('seal', { path });

  onVmExit(listener: (exit: VmExit) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** When the signal is aborted, rejects with its reason, after the job has ended. */
  async run(request: JobRequest, { onLine, signal }: JobOptions = {}): Promise<JobResult> {
    if (signal?.aborted) throw AenvError.from(signal.reason);
    const id = this.#nextId;
    const cancel = () => void this.#call('cancel', { request: id }).catch(() => {});
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      const result = await this.#call<JobResult>('run', request, onLine);
      if (signal?.aborted) throw AenvError.from(signal.reason);
      return result;
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }

  /** Closes the connection; VMs go on, jobs of this connection end. */
  async close(): Promise<void> {
    this.#socket.destroy();
    await this.closed;
  }

  #call<T>(method: string, params: unknown, onLine?: (line: string) => void): Promise<T> {
    const id = this.#nextId;
    this.#nextId += 1;
    return new Promise<T>((resolve, reject) => {
      if (this.#socket.destroyed) return reject(connectionLost());
      this.#pending.set(id, { resolve: (result) => resolve(result as T), reject, ...(onLine ? { onLine } : {}) });
      this.#socket.write(encode({ id, method, params }));
    });
  }

  #take(message: Message): void {
    if ('event' in message) {
      // Whoever waits for the start of this VM, whose answer may be in the same packet, is told of that first.
      setImmediate(() => this.#listeners.forEach((listener) => void listener(message.exit)));
      return;
    }
    const pending = this.#pending.get(message.id);
    if (!pending) return;
    if ('line' in message) {
      this.#deliver(message.id, pending, message.line);
      return;
    }
    this.#pending.delete(message.id);
    if ('error' in message) pending.reject(AenvError.fromJSON(message.error));
    else pending.resolve(message.result ?? undefined);
  }

  /** A listener that throws ends its own job, not the connection. */
  #deliver(id: number, { onLine, reject }: Pending, line: string): void {
    try {
      onLine?.(line);
    } catch (error) {
      this.#pending.delete(id);
      void this.#call('cancel', { request: id }).catch(() => {});
      reject(AenvError.from(error));
    }
  }

  #fail(): void {
    for (const { reject } of this.#pending.values()) reject(connectionLost());
    this.#pending.clear();
    this.#closed.resolve();
  }
}

function connectionLost(): AenvError {
  return new AenvError('internal', 'the connection to the launcher was lost');
}
