/** Exact reads from a stream of chunks that are cut anywhere. */
import { tarError } from './entry.ts';

const EMPTY = Buffer.alloc(0);

export class ByteReader {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #chunk: Buffer = EMPTY;
  /** Bytes consumed so far. */
  position = 0;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#chunks = source[Symbol.asyncIterator]();
  }

  /** Exactly `length` bytes; undefined when the stream has ended before the first of them. */
  async read(length: number): Promise<Buffer | undefined> {
    if (this.#chunk.length >= length) return this.#consume(length);
    const parts: Buffer[] = [];
    for await (const part of this.#pieces(length)) parts.push(part);
    const bytes = Buffer.concat(parts);
    if (bytes.length === 0 && length > 0) return undefined;
    if (bytes.length < length) throw tarError('it ends in the middle of a member');
    return bytes;
  }

  /** The next `length` bytes as they come; an error when the stream ends before. */
  async *take(length: number): AsyncGenerator<Buffer> {
    let left = length;
    for await (const part of this.#pieces(length)) {
      left -= part.length;
      yield part;
    }
    if (left > 0) throw tarError('it ends in the middle of a member');
  }

  /** Passes over `length` bytes; an error when the stream ends before. */
  async skip(length: number): Promise<void> {
    if (this.#chunk.length >= length) this.#consume(length);
    else for await (const part of this.take(length)) void part;
  }

  /** Reads to the end of the stream and throws the bytes away. */
  async drain(): Promise<void> {
    while (await this.#fill()) this.#consume(this.#chunk.length);
  }

  /** Ends the stream early. */
  async close(): Promise<void> {
    await this.#chunks.return?.();
  }

  async *#pieces(length: number): AsyncGenerator<Buffer> {
    let left = length;
    while (left > 0 && (await this.#fill())) {
      const part = this.#consume(Math.min(left, this.#chunk.length));
      left -= part.length;
      yield part;
    }
  }

  #consume(length: number): Buffer {
    const part = this.#chunk.subarray(0, length);
    this.#chunk = this.#chunk.subarray(length);
    this.position += length;
    return part;
  }

  /** False at the end of the stream. */
  async #fill(): Promise<boolean> {
    while (this.#chunk.length === 0) {
      const next = await this.#chunks.next();
      if (next.done) return false;
      const { buffer, byteOffset, byteLength } = next.value;
      this.#chunk = Buffer.from(buffer, byteOffset, byteLength);
    }
    return true;
  }
}
