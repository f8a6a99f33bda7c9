/** Checks requests against the contract before any handler sees them. */
import { API_SCHEMAS, type OperationInfo } from '@aenv/protocol';
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import formats from 'ajv-formats';
import { badRequest } from './errors.ts';

export interface RawRequest {
  params: unknown;
  query: unknown;
  body: unknown;
}

function newAjv(coerceTypes: boolean): Ajv {
  const ajv = new Ajv({ strict: true, allowUnionTypes: true, useDefaults: true, coerceTypes });
  formats.default(ajv);
  return ajv.addSchema(API_SCHEMAS);
}

// Paths and queries are text, so numbers in them are converted; in a body "5" is not 5.
const textual = newAjv(true);
const typed = newAjv(false);

function describe(part: string, error: ErrorObject): string {
  const where = error.instancePath.replaceAll('/', '.');
  const allowed = error.keyword === 'enum' ? `: ${(error.params.allowedValues as unknown[]).join(', ')}` : '';
  return `${part}${where} ${error.message}${allowed}`;
}

function check(part: string, validate: ValidateFunction | undefined, value: unknown): void {
  if (validate === undefined || validate(value)) return;
  const [first] = validate.errors ?? [];
  throw badRequest(first === undefined ? `${part} is not valid` : describe(part, first));
}

/** `state=a,b` and `state=a&state=b` both become a list. */
function splitLists(query: Record<string, unknown>, lists: readonly string[]): void {
  for (const name of lists) {
    const value = query[name];
    if (value !== undefined) query[name] = [value].flat().flatMap((item) => String(item).split(','));
  }
}

/**
 * Compiles the check of one operation's requests. What it returns converts `params` and `query` in place, fills in their
 * defaults, and throws `bad_request` that names the offending value.
 */
export function requestCheck(info: OperationInfo): (request: RawRequest) => void {
  const params = info.params && textual.compile(info.params);
  const query = info.query && textual.compile(info.query);
  const body = info.body && typed.compile(info.body);
  return (request) => {
    check('path', params, request.params);
    splitLists(request.query as Record<string, unknown>, info.lists);
    check('query', query, request.query);
    if (request.body !== undefined) check('body', body, request.body);
    else if (info.bodyRequired) throw badRequest('The request needs a JSON body.');
  };
}
