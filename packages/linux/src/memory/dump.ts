/** Writes what a stopped VM has changed in its memory since it was restored. */
import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { AenvError, isSystemError } from '@aenv/std';
import type { Home } from '../home.ts';
import type { MemoryDump } from '../launcher-api.ts';
import { DATA_OFFSET, encodeHeader, encodeIndex, fileLength, indexOffset, PAGE_SIZE, type Run } from './format.ts';
import { changedRuns, findMappings, type Mapping } from './mapping.ts';

/** Memory is copied in pieces of this many bytes; other requests get their turn in between. */
const PIECE = 4 << 20;
const ZERO_PAGE = Buffer.alloc(PAGE_SIZE);

/** See `Launcher.dumpMemory`. A failure leaves no file behind. */
export async function dumpMemory(home: Home, pid: number, memoryFile: string, path: string): Promise<MemoryDump> {
  const mappings = await findMappings(pid, memoryFile);
  const { size: memoryBytes } = await stat(memoryFile);
  await using file = await home.createFile(path);
  const pagemap = openSync(`/proc/${pid}/pagemap`, 'r');
  const memory = openSync(`/proc/${pid}/mem`, 'r');
  try {
    const writer = new DiffWriter(file.fd, memory);
    for (const mapping of mappings) await writer.copyChanged(pagemap, mapping);
    return writer.finish(memoryBytes);
  } catch (error) {
    await rm(path, { force: true });
    if (isSystemError(error, 'ESRCH') || isSystemError(error, 'EIO')) {
      throw new AenvError('snapshot_failed', `the memory of the VM cannot be read: ${error.message}`, { cause: error });
    }
    throw error;
  } finally {
    closeSync(pagemap);
    closeSync(memory);
  }
}

class DiffWriter {
  readonly #file: number;
  readonly #memory: number;
  readonly #buffer = Buffer.allocUnsafe(PIECE);
  readonly #runs: Run[] = [];
  #filled = 0;
  #dataPages = 0;
  #zeroPages = 0;
  #dataCrc = 0;
  #position = DATA_OFFSET;

  constructor(file: number, memory: number) {
    this.#file = file;
    this.#memory = memory;
  }

  async copyChanged(pagemap: number, mapping: Mapping): Promise<void> {
    for (const [first, count] of changedRuns(pagemap, mapping)) {
      for (let done = 0; done < count; ) {
        if (this.#filled === PIECE) {
          this.#flush();
          await nextTurn();
        }
        const pages = Math.min(count - done, (PIECE - this.#filled) / PAGE_SIZE);
        this.#copy(mapping, first + done, pages);
        done += pages;
      }
    }
  }

  /** Reads pages to the end of the buffer and keeps those that are not zero. */
  #copy(mapping: Mapping, first: number, pages: number): void {
    const target = this.#filled;
    readFully(this.#memory, this.#buffer, target, pages * PAGE_SIZE, mapping.address + first * PAGE_SIZE);
    for (let page = 0; page < pages; page += 1) {
      const from = target + page * PAGE_SIZE;
      const zero = ZERO_PAGE.compare(this.#buffer, from, from + PAGE_SIZE) === 0;
      this.#note(mapping.firstPage + first + page, zero);
      if (zero) continue;
      if (from !== this.#filled) this.#buffer.copyWithin(this.#filled, from, from + PAGE_SIZE);
      this.#filled += PAGE_SIZE;
    }
  }

  #note(page: number, zero: boolean): void {
    if (zero) this.#zeroPages += 1;
    else this.#dataPages += 1;
    const last = this.#runs.at(-1);
    if (last && last.zero === zero && last.firstPage + last.pages === page) last.pages += 1;
    else this.#runs.push({ firstPage: page, pages: 1, zero });
  }

  #flush(): void {
    const data = this.#buffer.subarray(0, this.#filled);
    this.#dataCrc = crc32(data, this.#dataCrc);
    writeFully(this.#file, data, this.#position);
    this.#position += data.length;
    this.#filled = 0;
  }

  /** The header comes last: a file without it is no diff. */
  finish(memoryBytes: number): MemoryDump {
    this.#flush();
    const index = encodeIndex(this.#runs);
    const header = {
      memoryBytes,
      dataPages: this.#dataPages,
      zeroPages: this.#zeroPages,
      runs: this.#runs.length,
      dataCrc: this.#dataCrc,
      indexCrc: crc32(index),
    };
    writeFully(this.#file, index, indexOffset(header));
    writeFully(this.#file, Buffer.concat([encodeHeader(header)], DATA_OFFSET), 0);
    const pages = header.dataPages + header.zeroPages;
    return { pages, zeroPages: header.zeroPages, fileBytes: fileLength(header) };
  }
}

function readFully(file: number, buffer: Buffer, offset: number, length: number, position: number): void {
  for (let done = 0; done < length; ) {
    const count = readSync(file, buffer, offset + done, length - done, position + done);
    if (count === 0) throw new AenvError('snapshot_failed', 'the memory of the VM ended early: the VM is gone');
    done += count;
  }
}

function writeFully(file: number, data: Buffer, position: number): void {
  for (let done = 0; done < data.length; ) {
    done += writeSync(file, data, done, data.length - done, position + done);
  }
}
