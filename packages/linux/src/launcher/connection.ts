/** One client of the launcher: reads its requests, answers them as they finish, and cancels them when it goes away. */
import type { Socket } from 'node:net';
import { AenvError, type Logger } from '@aenv/std';
import type { Call } from './methods.ts';
import { encode, LineSplitter, type Message, parseRequest, type Request } from './wire.ts';

/** Requests of one client that may be under way. */
const MAX_REQUESTS = 1000;
/** A client that does not read what it asked for is cut off, bytes. */
const MAX_UNREAD = 64 << 20;

type Perform = (method: string, params: unknown, call: Call) => Promise<unknown>;

export class Connection {
  readonly #socket: Socket;
  readonly #perform: Perform;
  readonly #logger: Logger;
  readonly #running = new Map<number, AbortController>();
  readonly #splitter = new LineSplitter();

  constructor(socket: Socket, perform: Perform, logger: Logger) {
    this.#socket = socket;
    this.#perform = perform;
    this.#logger = logger;
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('error', (error) => logger.debug({ err: error }, 'client connection failed'));
    socket.on('close', () => {
      for (const controller of this.#running.values()) controller.abort();
    });
  }

  send(message: Message): void {
    if (this.#socket.destroyed) return;
    if (this.#socket.writableLength > MAX_UNREAD) this.#socket.destroy();
    else this.#socket.write(encode(message));
  }

  #read(chunk: Buffer): void {
    try {
      for (const line of this.#splitter.push(chunk)) this.#take(parseRequest(line));
    } catch (error) {
      // After a line that is no request nothing that follows can be trusted.
      this.#logger.warn({ err: error }, 'client broke the protocol');
      this.#socket.destroy();
    }
  }

  #take(request: Request): void {
    if (this.#running.has(request.id)) throw new AenvError('bad_request', `request ${request.id} is under way already`);
    if (this.#running.size >= MAX_REQUESTS) {
      const error = new AenvError('capacity_exhausted', `${MAX_REQUESTS} requests are under way already`);
      this.send({ id: request.id, error: error.toJSON() });
    } else if (request.method === 'cancel') {
      this.#cancel(request);
    } else {
      void this.#answer(request);
    }
  }

  #cancel({ id, params }: Request): void {
    const wanted = typeof params === 'object' && params !== null && 'request' in params ? params.request : undefined;
    if (typeof wanted === 'number') this.#running.get(wanted)?.abort();
    this.send({ id, result: null });
  }

  async #answer({ id, method, params }: Request): Promise<void> {
    const controller = new AbortController();
    this.#running.set(id, controller);
    try {
      const onLine = (line: string) => this.send({ id, line });
      const result = await this.#perform(method, params, { signal: controller.signal, onLine });
      this.send({ id, result: result ?? null });
    } catch (reason) {
      const error = AenvError.from(reason);
      if (error.code === 'internal') this.#logger.error({ err: error, method }, 'request failed');
      this.send({ id, error: error.toJSON() });
    } finally {
      this.#running.delete(id);
    }
  }
}
