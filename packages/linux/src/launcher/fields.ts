/** Checks of single values in a request. Every failure is `bad_request` and names the field. */
import { AenvError } from '@aenv/std';

function refuse(name: string, expected: string): never {
  throw new AenvError('bad_request', `${name} must be ${expected}`);
}

export function record(value: unknown, name: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) refuse(name, 'an object');
  return value as Record<string, unknown>;
}

export function integer(value: unknown, name: string, min: number, max: number): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min || value > max) {
    refuse(name, `an integer from ${min} to ${max}`);
  }
  return value;
}

export function number(value: unknown, name: string, min: number, max: number): number {
  if (typeof value !== 'number' || !(value >= min && value <= max)) refuse(name, `a number from ${min} to ${max}`);
  return value;
}

export function boolean(value: unknown, name: string): boolean {
  if (typeof value !== 'boolean') refuse(name, 'true or false');
  return value;
}

/** Text without NUL bytes, as arguments and file names need it. */
export function text(value: unknown, name: string, maxLength: number): string {
  if (typeof value !== 'string' || value.length > maxLength || value.includes('\0')) {
    refuse(name, `text of at most ${maxLength} characters without NUL`);
  }
  return value;
}

export function textList(value: unknown, name: string, maxCount: number, maxLength: number): string[] {
  if (!Array.isArray(value) || value.length > maxCount) refuse(name, `a list of at most ${maxCount}`);
  return value.map((item, index) => text(item, `${name}[${index}]`, maxLength));
}

export function vmId(value: unknown): string {
  if (typeof value !== 'string' || !/^[a-z0-9-]{1,64}$/.test(value)) refuse('id', '1 to 64 of [a-z0-9-]');
  return value;
}
