/** Writes the pages of a memory diff into a VM that waits for its device state. */
import { closeSync, openSync, writeSync } from 'node:fs';
import { type FileHandle, stat } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { AenvError } from '@aenv/std';
import type { Home } from '../home.ts';
import {
  DATA_OFFSET,
  type DiffHeader,
  decodeHeader,
  decodeIndex,
  fileLength,
  HEADER_SIZE,
  indexOffset,
  PAGE_SIZE,
  RUN_SIZE,
  type Run,
} from './format.ts';
import { addressOf, findMappings, type Mapping } from './mapping.ts';

const PIECE_PAGES = 1024;
/** An index of this size describes a diff of every second page of 128 GiB. */
const MAX_INDEX = 256 << 20;

/**
 * See `Launcher.patchMemory`. Rejects with `restore_failed` for a damaged diff; the VM's memory is then undefined, and
 * the VM has to be killed.
 */
export async function patchMemory(home: Home, pid: number, memoryFile: string, path: string): Promise<void> {
  const mappings = findMappings(pid, memoryFile);
  await using file = await home.openFile(path);
  const { header, runs } = await readIndex(file);
  const { size } = await stat(memoryFile);
  if (size !== header.memoryBytes) {
    throw new AenvError(
      'restore_failed',
      `the diff belongs to a memory of ${header.memoryBytes} bytes; ${memoryFile} has ${size}`,
    );
  }
  const memory = openSync(`/proc/${pid}/mem`, 'r+');
  try {
    const crc = await writeRuns(file, memory, runs, mappings);
    if (crc !== header.dataCrc) throw new AenvError('restore_failed', 'the memory diff is damaged: wrong checksum');
  } finally {
    closeSync(memory);
  }
}

/** The index of a diff, checked; `restore_failed` when it is damaged. */
export async function readIndex(file: FileHandle): Promise<{ header: DiffHeader; runs: Run[] }> {
  const header = decodeHeader(await readExactly(file, 0, HEADER_SIZE));
  const { size } = await file.stat();
  if (size !== fileLength(header)) {
    throw new AenvError('restore_failed', `the memory diff has ${size} bytes instead of ${fileLength(header)}`);
  }
  if (header.runs * RUN_SIZE > MAX_INDEX) throw new AenvError('restore_failed', 'the memory diff has too many runs');
  return { header, runs: decodeIndex(await readExactly(file, indexOffset(header), header.runs * RUN_SIZE), header) };
}

/** Returns the CRC-32 of the data. */
async function writeRuns(file: FileHandle, memory: number, runs: Run[], mappings: Mapping[]): Promise<number> {
  const zeros = Buffer.alloc(PIECE_PAGES * PAGE_SIZE);
  let position = DATA_OFFSET;
  let crc = 0;
  for (const { firstPage, pages, zero } of runs) {
    for (let done = 0; done < pages; ) {
      const count = Math.min(PIECE_PAGES, pages - done);
      const bytes = count * PAGE_SIZE;
      const data = zero ? zeros.subarray(0, bytes) : await readExactly(file, position, bytes);
      if (!zero) {
        crc = crc32(data, crc);
        position += bytes;
      }
      writeAt(memory, data, mappings, firstPage + done);
      done += count;
    }
  }
  return crc;
}

/** Writes page by page where a mapping ends within the piece. */
function writeAt(memory: number, data: Buffer, mappings: Mapping[], firstPage: number): void {
  const pages = data.length / PAGE_SIZE;
  const address = addressOf(mappings, firstPage, pages);
  if (address !== undefined) {
    writeFully(memory, data, address);
    return;
  }
  if (pages === 1) throw new AenvError('restore_failed', `page ${firstPage} of the diff is not mapped by the VM`);
  const half = pages >> 1;
  writeAt(memory, data.subarray(0, half * PAGE_SIZE), mappings, firstPage);
  writeAt(memory, data.subarray(half * PAGE_SIZE), mappings, firstPage + half);
}

function writeFully(file: number, data: Buffer, position: number): void {
  for (let done = 0; done < data.length; ) {
    const count = writeSync(file, data, done, data.length - done, position + done);
    if (count === 0) throw new AenvError('restore_failed', 'the memory of the VM cannot be written: the VM is gone');
    done += count;
  }
}

async function readExactly(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(length), 0, length, position);
  if (bytesRead !== length) throw new AenvError('restore_failed', 'the memory diff is cut off');
  return buffer;
}
