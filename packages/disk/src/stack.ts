/** A disk as its guest sees it: a raw file, and qcow2 layers over it. */

import { Qcow2 } from './qcow2.ts';
import { type ByteSource, FileSource } from './source.ts';

export class DiskStack implements ByteSource {
  readonly size: number;
  readonly #files: FileSource[];
  /** Top first. */
  readonly #layers: Qcow2[];
  readonly #raw: FileSource;

  private constructor(files: FileSource[], raw: FileSource, layers: Qcow2[]) {
    this.#files = files;
    this.#raw = raw;
    this.#layers = layers;
    this.size = layers[0]?.size ?? raw.size;
  }

  /** `paths`: bottom first; the first one is raw, all others are qcow2. What they name as their base is not looked at. */
  static async open(paths: readonly string[]): Promise<DiskStack> {
    const files: FileSource[] = [];
    try {
      for (const path of paths) files.push(await FileSource.open(path));
      const [raw, ...rest] = files;
      if (!raw) throw new Error('a disk of no files');
      const layers = await Promise.all(rest.map((file) => Qcow2.open(file)));
      return new DiskStack(files, raw, layers.reverse());
    } catch (error) {
      await closeAll(files);
      throw error;
    }
  }

  async read(offset: number, length: number): Promise<Buffer> {
    const buffer = Buffer.alloc(length);
    for (let done = 0; done < length; ) done += await this.#readPiece(offset + done, buffer.subarray(done));
    return buffer;
  }

  /** Fills the beginning of `into`, which is all zero; returns how much. */
  async #readPiece(offset: number, into: Buffer): Promise<number> {
    let length = into.length;
    for (const layer of this.#layers) {
      const extent = await layer.extentAt(offset, length);
      length = extent.length;
      if (extent.kind === 'absent') continue;
      if (extent.kind === 'data') (await layer.read(extent.offset, length)).copy(into);
      return length;
    }
    // A disk may be larger than what it stands on.
    const there = Math.min(length, this.#raw.size - offset);
    if (there > 0) (await this.#raw.read(offset, there)).copy(into);
    return length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await closeAll(this.#files);
  }
}

async function closeAll(files: FileSource[]): Promise<void> {
  for (const file of files) await file[Symbol.asyncDispose]();
}
