/** An API over a fake engine, and requests that check every answer against the contract. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { API_SCHEMAS, OPERATION_IDS, type OperationId, operationInfo } from '@aenv/protocol';
import { ERROR_CODES, ManualClock, silentLogger } from '@aenv/std';
import { Ajv, type ValidateFunction } from 'ajv';
import formats from 'ajv-formats';
import { createApi } from '../index.ts';
import { type FakeEngine, fakeEngine } from './fake-engine.ts';

export const API_KEY = `e2b_${'0123456789abcdef'.repeat(2)}01234567`;

const ajv = new Ajv({ strict: true, allowUnionTypes: true });
formats.default(ajv);
ajv.addSchema(API_SCHEMAS);
const validators = new Map<string, ValidateFunction>();

/** Throws when `value` is not what `schema` says. */
export function assertMatches(schema: object, value: unknown): void {
  const key = JSON.stringify(schema);
  const validate = validators.get(key) ?? ajv.compile(schema);
  validators.set(key, validate);
  assert.ok(validate(value), `${ajv.errorsText(validate.errors)} in ${JSON.stringify(value)}`);
}

export interface Call {
  /** Those that the path does not have are ignored. */
  params?: Record<string, unknown>;
  query?: Record<string, string>;
  /** Sent as JSON. */
  body?: unknown;
  headers?: Record<string, string>;
}

export interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: its shape has been checked against the contract at run time
  body: any;
  headers: Record<string, string | number | string[] | undefined>;
}

export interface Harness {
  engine: FakeEngine;
  clock: ManualClock;
  api: ReturnType<typeof createApi>;
  call(id: OperationId, call?: Call): Promise<Answer>;
  /** A template named `base`, built; returns its id. */
  template(name?: string): string;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The answer has to be one that the contract declares: a success with its schema, or an error of the one shape. */
export function assertAnswer(id: OperationId, status: number, body: unknown): void {
  const { responses } = operationInfo(id);
  if (status < 300) {
    const schema = responses[String(status)];
    assert.notEqual(schema, undefined, `${id} does not declare ${status}`);
    if (schema === null) assert.equal(body, undefined);
    else assertMatches(schema as object, body);
    return;
  }
  assertMatches({ $ref: 'aenv#/$defs/Error' }, body);
  const error = body as { code: number; error_code: keyof typeof ERROR_CODES };
  assert.equal(error.code, status);
  assert.equal(ERROR_CODES[error.error_code]?.status, status);
}

export function pathOf(id: OperationId, params: Record<string, unknown> = {}): string {
  const value = (_: string, name: string) => encodeURIComponent(String(params[name] ?? 'x'));
  return operationInfo(id).path.replace(/\{(\w+)\}/g, value);
}

export function newHarness(): Harness {
  const clock = new ManualClock(Date.parse('2026-01-02T03:04:05.678Z'));
  const engine = fakeEngine(clock);
  const api = createApi({
    engine,
    isApiKey: (key) => key === API_KEY,
    version: '1.2.3',
    domain: null,
    logger: silentLogger,
    limits: { bodyBytes: 64 * 1024 },
  });
  const call = async (id: OperationId, { params, query, body, headers }: Call = {}): Promise<Answer> => {
    const response = await api.inject({
      method: operationInfo(id).method,
      url: pathOf(id, params),
      query,
      headers: { 'x-api-key': API_KEY, ...headers },
      ...(body === undefined ? {} : { payload: body as object }),
    });
    const parsed = response.body === '' ? undefined : JSON.parse(response.body);
    assertAnswer(id, response.statusCode, parsed);
    return { status: response.statusCode, body: parsed, headers: response.headers };
  };
  const template = (name = 'base'): string => {
    const view = engine.createTemplate({ name, tags: [] });
    engine.startBuild(view.id, view.build.id, { fromImage: 'debian' });
    return view.id;
  };
  return { engine, clock, api, call, template, [Symbol.asyncDispose]: () => api.close() };
}

/** The API on a real socket, for the SDK. */
export async function listen(harness: Pick<Harness, 'api'>): Promise<{ url: string } & AsyncDisposable> {
  await harness.api.ready();
  const server = createServer(harness.api.handler).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: close };
}

/** Values for the path that have the right shape and name nothing. */
export const NOWHERE = {
  sandboxID: 'i0000000000000000000',
  templateID: 'nothing',
  buildID: '00000000-0000-4000-8000-000000000000',
  alias: 'nothing',
  hash: 'abc',
  volumeID: 'v',
  secretID: 's',
};

export const SERVED = OPERATION_IDS.filter((id) => operationInfo(id).refused === undefined);
export const REFUSED = OPERATION_IDS.filter((id) => operationInfo(id).refused !== undefined);
