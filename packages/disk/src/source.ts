/** Where bytes of a disk come from. */
import { type FileHandle, open } from 'node:fs/promises';
import { AenvError } from '@aenv/std';

export interface ByteSource {
  /** Bytes that there are. */
  readonly size: number;
  /** Exactly `length` bytes; `disk_unreadable` when they are not there. */
  read(offset: number, length: number): Promise<Buffer>;
}

export function damaged(what: string): never {
  throw new AenvError('disk_unreadable', what);
}

/** A file; what lies beyond its end is an error. */
export class FileSource implements ByteSource {
  readonly size: number;
  readonly #file: FileHandle;
  readonly #path: string;

  private constructor(file: FileHandle, path: string, size: number) {
    this.#file = file;
    this.#path = path;
    this.size = size;
  }

  static async open(path: string): Promise<FileSource> {
    const file = await open(path, 'r');
    return new FileSource(file, path, (await file.stat()).size);
  }

  async read(offset: number, length: number): Promise<Buffer> {
    if (offset < 0 || offset + length > this.size) damaged(`${this.#path} ends before byte ${offset + length}`);
    const buffer = Buffer.allocUnsafe(length);
    for (let done = 0; done < length; ) {
      const { bytesRead } = await this.#file.read(buffer, done, length - done, offset + done);
      if (bytesRead === 0) damaged(`${this.#path} ends before byte ${offset + length}`);
      done += bytesRead;
    }
    return buffer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }
}
