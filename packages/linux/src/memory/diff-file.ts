/**
 * A memory diff while it is written. Pages are collected in pieces; as long as these fit, they are written only when the
 * last page has been read: until then a VM stands still.
 */
import type { FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import type { MemoryDump } from '../launcher-api.ts';
import { DATA_OFFSET, encodeHeader, encodeIndex, fileLength, indexOffset, PAGE_SIZE, type Run } from './format.ts';

/** Bytes that are written at once. */
export const PIECE = 4 << 20;
/** Full pieces that wait while a VM stands still; what a snapshot of an ordinary sandbox changes fits into them. */
const MOST_WAITING = 3;
/** Writes at the same time: most of what one takes is the system finding memory for it. */
const PARALLEL_WRITES = 2;
/** All that one diff uses: those that wait or are written, and the one that is being filled. */
const MOST_SPARE = MOST_WAITING + PARALLEL_WRITES + 1;

/** Buffers that the system has given memory to already: the first use of one takes three times as long. */
const spare: Buffer[] = [];

/** What is written, while its checksum is computed. */
interface Piece {
  data: Buffer;
  written: Promise<void>;
}

export class DiffFile {
  readonly #file: Promise<FileHandle>;
  readonly #runs: Run[] = [];
  /** Full pieces that nobody writes yet. */
  readonly #waiting: Buffer[] = [];
  /** Oldest first. */
  readonly #writing: Piece[] = [];
  /** The piece that is being filled. */
  piece = takeBuffer();
  #filled = 0;
  #dataPages = 0;
  #zeroPages = 0;
  #crc = 0;
  #position = DATA_OFFSET;

  /** The file is closed with `finish` or `abandon`. */
  constructor(file: Promise<FileHandle>) {
    this.#file = file;
    // It is needed later, and so is a failure to open it.
    file.catch(() => {});
  }

  /** Bytes that `piece` can take. */
  get room(): number {
    return PIECE - this.#filled;
  }

  /** Notes a page of the memory file, and moves its data from `from` to the end of what `piece` holds; none = all zero. */
  keep(page: number, from: number | undefined): void {
    const zero = from === undefined;
    if (zero) this.#zeroPages += 1;
    else this.#dataPages += 1;
    const last = this.#runs.at(-1);
    if (last && last.zero === zero && last.firstPage + last.pages === page) last.pages += 1;
    else this.#runs.push({ firstPage: page, pages: 1, zero });
    if (zero) return;
    if (from !== this.#filled) this.piece.copyWithin(this.#filled, from, from + PAGE_SIZE);
    this.#filled += PAGE_SIZE;
  }

  /** Begins the next piece. */
  async turn(): Promise<void> {
    this.#waiting.push(this.piece.subarray(0, this.#filled));
    if (this.#waiting.length >= MOST_WAITING) await this.#writeNext();
    this.piece = takeBuffer();
    this.#filled = 0;
  }

  /** Writes what is missing; the header comes last, since a file without it is no diff. */
  async finish(memoryBytes: number): Promise<MemoryDump> {
    this.#waiting.push(this.piece.subarray(0, this.#filled));
    while (this.#waiting.length > 0) await this.#writeNext();
    await this.#endWrites(0);
    const index = encodeIndex(this.#runs);
    const header = {
      memoryBytes,
      dataPages: this.#dataPages,
      zeroPages: this.#zeroPages,
      runs: this.#runs.length,
      dataCrc: this.#crc,
      indexCrc: crc32(index),
    };
    const file = await this.#file;
    await writeFully(file, index, indexOffset(header));
    await writeFully(file, Buffer.concat([encodeHeader(header)], DATA_OFFSET), 0);
    await file.close();
    const pages = header.dataPages + header.zeroPages;
    return { pages, zeroPages: header.zeroPages, fileBytes: fileLength(header) };
  }

  /** Closes the file, whatever state it is in. Never rejects. */
  async abandon(): Promise<void> {
    await Promise.allSettled(this.#writing.map(({ written }) => written));
    await this.#file.then((file) => file.close()).catch(() => {});
  }

  /** A piece is written while its checksum is computed and the next ones are filled. */
  async #writeNext(): Promise<void> {
    await this.#endWrites(PARALLEL_WRITES - 1);
    const data = this.#waiting.shift();
    if (!data) return;
    const file = await this.#file;
    const written = writeFully(file, data, this.#position);
    written.catch(() => {});
    this.#position += data.length;
    this.#writing.push({ data, written });
    this.#crc = crc32(data, this.#crc);
  }

  /** Waits until at most `left` pieces are being written. */
  async #endWrites(left: number): Promise<void> {
    for (let [first] = this.#writing; first && this.#writing.length > left; [first] = this.#writing) {
      await first.written;
      this.#writing.shift();
      if (spare.length < MOST_SPARE) spare.push(Buffer.from(first.data.buffer, first.data.byteOffset, PIECE));
    }
  }
}

function takeBuffer(): Buffer {
  return spare.pop() ?? Buffer.allocUnsafeSlow(PIECE);
}

async function writeFully(file: FileHandle, data: Buffer, position: number): Promise<void> {
  for (let done = 0; done < data.length; ) {
    const { bytesWritten } = await file.write(data, done, data.length - done, position + done);
    done += bytesWritten;
  }
}
