/** Generates types, JSON schemas and the table of operations from `spec/openapi/aenv.yaml`. */
import { join } from 'node:path';
import { bundle, createConfig, lint, type NormalizedProblem } from '@redocly/openapi-core';
import openapiTypescript, { astToString } from 'openapi-typescript';
import type { GeneratedFiles } from './files.ts';

const BANNER = '// Generated from spec/openapi/ by `npm run gen`; do not edit.\n';
const METHODS = ['get', 'put', 'post', 'delete', 'patch'] as const;
/** What makes the contract unusable rather than unusual. */
const RULES = {
  struct: 'error',
  'no-unresolved-refs': 'error',
  'no-identical-paths': 'error',
  'operation-operationId-unique': 'error',
  'path-parameters-defined': 'error',
  'path-declaration-must-exist': 'error',
  'security-defined': 'error',
  'no-enum-type-mismatch': 'error',
} as const;
/** `$id` of the one schema document that all references in the generated schemas point into. */
const SCHEMA_ID = 'aenv';

interface Parameter {
  name: string;
  in: 'path' | 'query';
  required?: boolean;
  explode?: boolean;
  schema: Schema;
}
type Schema = Record<string, unknown>;
interface Content {
  content?: { 'application/json'?: { schema: Schema } };
}
type Reference<T> = T | { $ref: string };
interface Operation {
  operationId: string;
  parameters?: Reference<Parameter>[];
  requestBody?: Content & { required?: boolean };
  responses: Record<string, Reference<Content>>;
  security?: Record<string, string[]>[];
  'x-origin': 'e2b' | 'aenv';
  'x-refused'?: string;
}
type PathItem = { parameters?: Reference<Parameter>[] } & { [M in (typeof METHODS)[number]]?: Operation };
interface Document {
  paths: Record<string, PathItem>;
  security: Record<string, string[]>[];
  components: {
    schemas: Record<string, Schema>;
    parameters: Record<string, Parameter>;
    responses: Record<string, Content>;
  };
}

function resolve<T extends object>(document: Document, value: Reference<T>): T {
  if (!('$ref' in value)) return value;
  const [, , section, name] = value.$ref.split('/') as [string, string, keyof Document['components'], string];
  const found = document.components[section]?.[name];
  if (found === undefined) throw new Error(`spec/openapi: ${value.$ref} does not exist`);
  return found as T;
}

/** The same schema with references into the document `SCHEMA_ID`. */
function relocate(schema: unknown): unknown {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/components/schemas/', `"${SCHEMA_ID}#/$defs/`));
}

function objectSchema(parameters: Parameter[]): Schema | undefined {
  if (parameters.length === 0) return undefined;
  return {
    type: 'object',
    required: parameters.filter((parameter) => parameter.required).map((parameter) => parameter.name),
    properties: Object.fromEntries(parameters.map((parameter) => [parameter.name, relocate(parameter.schema)])),
  };
}

function successResponses(document: Document, operation: Operation): Record<string, unknown> {
  const responses: Record<string, unknown> = {};
  for (const [status, response] of Object.entries(operation.responses)) {
    if (!status.startsWith('2')) continue;
    const schema = resolve(document, response).content?.['application/json']?.schema;
    responses[status] = schema === undefined ? null : relocate(schema);
  }
  return responses;
}

function describe(document: Document, path: string, method: string, item: PathItem, operation: Operation): object {
  const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map((parameter) =>
    resolve<Parameter>(document, parameter),
  );
  const query = parameters.filter((parameter) => parameter.in === 'query');
  const body = operation.requestBody?.content?.['application/json']?.schema;
  // Properties that are undefined vanish in the generated text.
  return {
    method: method.toUpperCase(),
    path,
    origin: operation['x-origin'],
    security: (operation.security ?? document.security).flatMap((scheme) => Object.keys(scheme)),
    refused: operation['x-refused'],
    params: objectSchema(parameters.filter((parameter) => parameter.in === 'path')),
    query: objectSchema(query),
    lists: query.filter((parameter) => parameter.explode === false).map((parameter) => parameter.name),
    body: body === undefined ? undefined : relocate(body),
    bodyRequired: operation.requestBody?.required ?? false,
    responses: successResponses(document, operation),
  };
}

function operationTable(document: Document): Record<string, object> {
  const operations: Record<string, object> = {};
  for (const [path, item] of Object.entries(document.paths)) {
    for (const method of METHODS) {
      const operation = item[method];
      if (operation === undefined) continue;
      operations[operation.operationId] = describe(document, path, method, item, operation);
    }
  }
  return operations;
}

function throwProblems(problems: NormalizedProblem[]): void {
  if (problems.length === 0) return;
  const lines = problems.map(({ message, location }) => {
    const [place] = location;
    return `${place?.source.absoluteRef ?? 'spec/openapi'} ${place?.pointer ?? ''}: ${message}`;
  });
  throw new Error(lines.join('\n'));
}

function constant(name: string, comment: string, value: unknown): string {
  return `/** ${comment} */\nexport const ${name} = ${JSON.stringify(value, null, 2)} as const;\n`;
}

/** `root` is the checkout; the keys of the result are paths below `packages/protocol/src/gen/`. */
export async function generateOpenapi(root: string): Promise<GeneratedFiles> {
  const ref = join(root, 'spec/openapi/aenv.yaml');
  const config = await createConfig({ rules: RULES });
  const problems = await lint({ ref, config });
  const result = await bundle({ ref, config });
  throwProblems([...problems, ...result.problems]);
  const document = result.bundle.parsed as Document;
  const schemas = { $id: SCHEMA_ID, $defs: relocate(document.components.schemas) };
  const types = astToString(await openapiTypescript(JSON.stringify(document)));
  return new Map([
    ['api/types.ts', `${BANNER}${types}`],
    ['api/schemas.ts', BANNER + constant('API_SCHEMAS', 'All schemas of the API as one JSON schema.', schemas)],
    ['api/operations.ts', BANNER + constant('OPERATIONS', 'Every operation by its id.', operationTable(document))],
  ]);
}
