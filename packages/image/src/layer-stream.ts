/** The tar stream inside a stored layer: decompressed by what the content is, and hashed on the way. */
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline, Readable, type Transform } from 'node:stream';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { AenvError, isSystemError } from '@aenv/std';
import { digestMismatch, hasherFor } from './digest.ts';
import type { StoredBlob } from './source.ts';

const READ_BYTES = 1 << 18;

/** The uncompressed bytes of a layer. Errors are `image_invalid` where the content is to blame. */
export async function* openLayer(blob: StoredBlob): AsyncGenerator<Uint8Array> {
  const decompress = decompressorFor(await firstBytes(blob));
  const file = blob.size === 0 ? Readable.from([]) : readBlob(blob);
  // The error of either stream ends the iteration below.
  const stream = decompress ? pipeline(file, decompress, () => {}) : file;
  try {
    for await (const chunk of stream) yield chunk;
  } catch (error) {
    throw contentError(error);
  } finally {
    file.destroy();
    stream.destroy();
  }
}

export async function isCompressed(blob: StoredBlob): Promise<boolean> {
  return decompressorFor(await firstBytes(blob)) !== undefined;
}

/** As `openLayer`; after the last byte it throws unless the whole had this digest. */
export async function* openVerifiedLayer(blob: StoredBlob, diffId: string, label: string): AsyncGenerator<Uint8Array> {
  const hash = hasherFor(diffId);
  for await (const chunk of openLayer(blob)) {
    hash.update(chunk);
    yield chunk;
  }
  const actual = `${diffId.slice(0, diffId.indexOf(':'))}:${hash.digest('hex')}`;
  if (actual !== diffId) throw digestMismatch(`the content of layer ${label}`, diffId, actual);
}

function readBlob({ path, start, size }: StoredBlob): Readable {
  return createReadStream(path, { start, end: start + size - 1, highWaterMark: READ_BYTES });
}

async function firstBytes({ path, start, size }: StoredBlob): Promise<Buffer> {
  await using file = await open(path, 'r');
  const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, Math.min(4, size), start);
  return buffer.subarray(0, bytesRead);
}

function decompressorFor(magic: Buffer): Transform | undefined {
  if (magic[0] === 0x1f && magic[1] === 0x8b) return createGunzip({ chunkSize: READ_BYTES });
  if (magic.equals(Buffer.from([0x28, 0xb5, 0x2f, 0xfd]))) return createZstdDecompress({ chunkSize: READ_BYTES });
  return undefined;
}

function contentError(error: unknown): unknown {
  if (!isSystemError(error) || !/^(?:Z_|ZSTD_|ERR_ZLIB)/.test(error.code ?? '')) return error;
  return new AenvError('image_invalid', `a layer cannot be decompressed: ${error.message}`, {
    remedy: 'The layer is truncated or damaged: push the image again, or pull from another source.',
    cause: error,
  });
}
