/** The byte stream of a QMP socket cut into messages: one JSON object a line (qemu docs/interop/qmp-spec). */
import { StringDecoder } from 'node:string_decoder';

/** Far above what a command of ours returns; a VMM that a guest has taken over must not fill our memory. */
const MAX_LINE_CHARACTERS = 1 << 20;

export type QmpMessage =
  | { kind: 'greeting'; version: string }
  | { kind: 'return'; id: number | undefined; value: unknown }
  | { kind: 'error'; id: number | undefined; errorClass: string; description: string }
  | { kind: 'event'; name: string; data: Record<string, unknown> };

export class QmpLines {
  readonly #decoder = new StringDecoder('utf8');
  #rest = '';

  /** The messages that `chunk` completes. Throws an Error on what is not QMP; the stream is of no use afterwards. */
  push(chunk: Buffer): QmpMessage[] {
    const lines = (this.#rest + this.#decoder.write(chunk)).split('\n');
    this.#rest = lines.pop() ?? '';
    if (this.#rest.length > MAX_LINE_CHARACTERS || lines.some((line) => line.length > MAX_LINE_CHARACTERS)) {
      throw new Error('a line without end');
    }
    return lines.filter((line) => line.trim() !== '').map(parseMessage);
  }
}

function parseMessage(line: string): QmpMessage {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new Error(`not JSON: ${line.slice(0, 200)}`);
  }
  const message = asRecord(value);
  if (message) {
    if ('return' in message) return { kind: 'return', id: numberOf(message.id), value: message.return };
    const error = asRecord(message.error);
    if (error) {
      return {
        kind: 'error',
        id: numberOf(message.id),
        errorClass: textOf(error.class),
        description: textOf(error.desc),
      };
    }
    if (typeof message.event === 'string') {
      return { kind: 'event', name: message.event, data: asRecord(message.data) ?? {} };
    }
    const greeting = asRecord(message.QMP);
    if (greeting) return { kind: 'greeting', version: versionOf(greeting) };
  }
  throw new Error(`not a QMP message: ${line.slice(0, 200)}`);
}

function versionOf(greeting: Record<string, unknown>): string {
  const { major, minor, micro } = asRecord(asRecord(greeting.version)?.qemu) ?? {};
  return [major, minor, micro].map((part) => numberOf(part) ?? 0).join('.');
}

/** `value` when it is an object with keys. */
export function asRecord(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;
}

const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);
const textOf = (value: unknown): string => (typeof value === 'string' ? value.slice(0, 2000) : '');
