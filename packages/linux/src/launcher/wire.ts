/**
 * The protocol on the launcher's socket: one JSON object a line, in both directions.
 *
 *   request   {"id": 1, "method": "createSlot", "params": {…}}     id: a positive integer, unique on the connection
 *   answer    {"id": 1, "result": …} or {"id": 1, "error": {"code", "message", "remedy"?}}
 *   progress  {"id": 1, "line": "…"}                               a line of a running job's stdout, before its answer
 *   event     {"event": "vmExit", "exit": {…}}
 */
import { AenvError, type ErrorJson } from '@aenv/std';
import type { VmExit } from '../launcher-api.ts';

/** Bytes of the longest line that either side accepts. */
export const MAX_LINE = 4 << 20;

export interface Request {
  id: number;
  method: string;
  params: unknown;
}

export type Message =
  | { id: number; result: unknown }
  | { id: number; error: ErrorJson }
  | { id: number; line: string }
  | { event: 'vmExit'; exit: VmExit };

export function encode(message: Request | Message): string {
  return `${JSON.stringify(message)}\n`;
}

/** Cuts a stream of bytes into lines, whatever the pieces it comes in. */
export class LineSplitter {
  #parts: Buffer[] = [];
  #length = 0;
  readonly #maxLine: number;

  constructor(maxLine: number = MAX_LINE) {
    this.#maxLine = maxLine;
  }

  /** The lines that `chunk` completes, without their newline; `payload_too_large` for one over the limit. */
  push(chunk: Buffer): string[] {
    const lines: string[] = [];
    let rest = chunk;
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      this.#keep(rest.subarray(0, end));
      lines.push(this.take());
      rest = rest.subarray(end + 1);
    }
    if (rest.length > 0) this.#keep(rest);
    return lines;
  }

  /** What came after the last newline. */
  take(): string {
    const line = Buffer.concat(this.#parts, this.#length).toString('utf8');
    this.#parts = [];
    this.#length = 0;
    return line;
  }

  #keep(part: Buffer): void {
    this.#length += part.length;
    if (this.#length > this.#maxLine) {
      throw new AenvError('payload_too_large', `a line is longer than ${this.#maxLine} bytes`);
    }
    this.#parts.push(part);
  }
}

/** Reads a request; `bad_request` for anything else. */
export function parseRequest(line: string): Request {
  const value = parseObject(line);
  const { id, method, params } = value;
  if (!isId(id)) throw new AenvError('bad_request', 'id must be a positive integer');
  if (typeof method !== 'string') throw new AenvError('bad_request', 'method must be text');
  return { id, method, params };
}

/** Reads what the launcher sends; `bad_request` for anything else. */
export function parseMessage(line: string): Message {
  const value = parseObject(line);
  if (value.event === 'vmExit' && typeof value.exit === 'object' && value.exit !== null) {
    return { event: 'vmExit', exit: value.exit as VmExit };
  }
  const { id, error } = value;
  if (!isId(id)) throw new AenvError('bad_request', 'id must be a positive integer');
  if (typeof value.line === 'string') return { id, line: value.line };
  if (typeof error === 'object' && error !== null) return { id, error: error as ErrorJson };
  return { id, result: value.result };
}

function isId(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0;
}

function parseObject(line: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw new AenvError('bad_request', 'not a line of JSON', { cause: error });
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new AenvError('bad_request', 'a message must be an object');
}
