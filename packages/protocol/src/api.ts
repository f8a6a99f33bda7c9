/** The public API as types and tables; `spec/openapi/aenv.yaml` is the source. */
import { OPERATIONS } from './gen/api/operations.ts';
import { API_SCHEMAS } from './gen/api/schemas.ts';
import type { components, operations } from './gen/api/types.ts';

export type { components, operations, paths } from './gen/api/types.ts';
export { API_SCHEMAS, OPERATIONS };

/** A named schema of the contract, such as `Schema<'NewSandbox'>`. */
export type Schema<Name extends keyof components['schemas']> = components['schemas'][Name];

export type OperationId = keyof typeof OPERATIONS;

/** Operations of E2B that are only answered with a reason. */
export type RefusedOperationId = {
  [Id in OperationId]: (typeof OPERATIONS)[Id] extends { refused: string } ? Id : never;
}[OperationId];

/** Operations that need a handler. */
export type ServedOperationId = Exclude<OperationId, RefusedOperationId>;

/** One row of OPERATIONS without its literal types. The schemas refer to API_SCHEMAS by its `$id`. */
export interface OperationInfo {
  method: 'GET' | 'PUT' | 'POST' | 'DELETE' | 'PATCH';
  /** With `{name}` for parameters. */
  path: string;
  origin: 'e2b' | 'aenv';
  /** Any of them is enough; empty: no key needed. */
  security: readonly ('ApiKey' | 'Bearer')[];
  /** Why the operation is not served. */
  refused?: string;
  params?: object;
  query?: object;
  /** Query parameters that are lists separated by commas. */
  lists: readonly string[];
  body?: object;
  bodyRequired: boolean;
  /** Success statuses and the schemas of their bodies; null: no body. */
  responses: Record<string, object | null>;
}

export function operationInfo(id: OperationId): OperationInfo {
  return OPERATIONS[id];
}

export const OPERATION_IDS = Object.keys(OPERATIONS) as OperationId[];

type Defined<T> = Exclude<T, undefined>;

export type PathParams<Id extends OperationId> = operations[Id]['parameters'] extends { path: infer P } ? P : object;

export type QueryParams<Id extends OperationId> =
  Defined<operations[Id]['parameters']['query']> extends never
    ? object
    : Defined<operations[Id]['parameters']['query']>;

/** What the handler receives: `undefined` where the body is optional and absent, or the operation has none. */
export type RequestBody<Id extends OperationId> = operations[Id]['requestBody'] extends {
  content: { 'application/json': infer B };
}
  ? B
  : Defined<operations[Id]['requestBody']> extends { content: { 'application/json': infer B } }
    ? B | undefined
    : undefined;

type JsonOf<Response> = Response extends { content: { 'application/json': infer B } } ? B : undefined;

/** The answers that mean success: each status with its own body. */
export type Success<Id extends OperationId> = {
  [Status in keyof operations[Id]['responses'] & number]: {
    status: Status;
    body: JsonOf<operations[Id]['responses'][Status]>;
  };
}[keyof operations[Id]['responses'] & number];
