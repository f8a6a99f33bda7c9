/** Sends input in order, one request at a time; what is typed meanwhile travels together with the next one. */
import type { GuestProcess } from '@aenv/guest';

export class InputQueue {
  readonly #process: GuestProcess;
  #waiting: Uint8Array[] = [];
  #sending = false;

  constructor(process: GuestProcess) {
    this.#process = process;
  }

  push(bytes: Uint8Array): void {
    this.#waiting.push(bytes);
    if (!this.#sending) void this.#send();
  }

  /** Input that cannot be delivered is lost: the process has ended, and its stream says how. */
  async #send(): Promise<void> {
    this.#sending = true;
    while (this.#waiting.length > 0) {
      const bytes = Buffer.concat(this.#waiting);
      this.#waiting = [];
      await this.#process.sendInput(bytes).catch(() => {});
    }
    this.#sending = false;
  }
}
