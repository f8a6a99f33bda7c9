/**
 * A file per VM, written before its process starts, so that a launcher that is killed at any moment leaves nothing that
 * the next one cannot find.
 */
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { writeFileAtomic } from '@aenv/std';

export interface VmRecordFile {
  id: string;
  slot: number;
  logFile: string;
  /** Absent until the process has started. */
  process?: { pid: number; startTicks: number };
}

export class VmRecords {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async read(): Promise<VmRecordFile[]> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const names = (await readdir(this.#directory)).filter((name) => name.endsWith('.json'));
    const files = await Promise.all(names.map((name) => readFile(`${this.#directory}/${name}`, 'utf8')));
    return files.map((text) => JSON.parse(text) as VmRecordFile);
  }

  async write(record: VmRecordFile): Promise<void> {
    await writeFileAtomic(this.#file(record.id), JSON.stringify(record), { mode: 0o600 });
  }

  async remove(id: string): Promise<void> {
    await rm(this.#file(id), { force: true });
  }

  #file(id: string): string {
    return `${this.#directory}/${id}.json`;
  }
}
