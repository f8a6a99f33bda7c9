/** Values from the contract's JSON schemas, for fuzzing. Knows the keywords that the contract uses, and no others. */
import { API_SCHEMAS } from '@aenv/protocol';
import fc from 'fast-check';

export interface JsonSchema {
  $ref?: string;
  type?: string | readonly string[];
  enum?: readonly string[];
  format?: string;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
  items?: JsonSchema;
  required?: readonly string[];
  properties?: Record<string, JsonSchema>;
  propertyNames?: JsonSchema;
  additionalProperties?: JsonSchema;
}

/** The parser refuses these keys in any document. */
const anything = fc.jsonValue().filter((value) => !/"(__proto__|constructor)"/.test(JSON.stringify(value)));

const NAMED: Record<string, JsonSchema> = API_SCHEMAS.$defs;

function referenced(reference: string): JsonSchema {
  const schema = NAMED[reference.replace('aenv#/$defs/', '')];
  if (schema === undefined) throw new Error(`no schema ${reference}`);
  return schema;
}

function text(schema: JsonSchema): fc.Arbitrary<string> {
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (schema.format === 'uuid') return fc.uuid();
  if (schema.format === 'date-time')
    return fc.date({ noInvalidDate: true, min: new Date(0) }).map((d) => d.toISOString());
  if (schema.pattern) return fc.stringMatching(new RegExp(schema.pattern, 'u'), { maxLength: 60 });
  return fc.string({ minLength: schema.minLength ?? 0, maxLength: Math.min(schema.maxLength ?? 40, 40) });
}

function object(schema: JsonSchema): fc.Arbitrary<unknown> {
  if (schema.properties === undefined) {
    const key = schema.propertyNames ? text(schema.propertyNames) : fc.string();
    const value = schema.additionalProperties ? valid(schema.additionalProperties) : anything;
    return fc.dictionary(
      key.filter((name) => name !== '__proto__'),
      value,
      { maxKeys: 4 },
    );
  }
  const fields = Object.fromEntries(Object.entries(schema.properties).map(([name, inner]) => [name, valid(inner)]));
  return fc.record(fields, { requiredKeys: [...(schema.required ?? [])] });
}

function ofType(type: string | undefined, schema: JsonSchema): fc.Arbitrary<unknown> {
  const { minimum: min = 0, maximum: max = 2 ** 31 - 1, minItems: minLength = 0, maxItems = 4 } = schema;
  switch (type) {
    case 'string':
      return text(schema);
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return fc.oneof(
        fc.constantFrom(min, max),
        fc.maxSafeInteger().map((n) => min + (Math.abs(n) % (max - min + 1))),
      );
    case 'null':
      return fc.constant(null);
    case 'array':
      return fc.array(valid(schema.items ?? {}), { minLength, maxLength: Math.min(maxItems, 4) });
    case 'object':
      return object(schema);
    default:
      return anything;
  }
}

/** Values that the schema allows. */
export function valid(schema: JsonSchema): fc.Arbitrary<unknown> {
  if (schema.$ref) return valid(referenced(schema.$ref));
  if (Array.isArray(schema.type)) return fc.oneof(...schema.type.map((type) => ofType(type, schema)));
  return ofType(schema.type as string | undefined, schema);
}

/** Valid objects with some fields replaced by, or enriched with, anything: near misses rather than noise. */
export function nearlyValid(schema: JsonSchema): fc.Arbitrary<unknown> {
  const resolved = schema.$ref ? referenced(schema.$ref) : schema;
  const name = fc.oneof(fc.constantFrom('unknown', ...Object.keys(resolved.properties ?? {})), fc.string());
  const noise = fc.oneof(fc.jsonValue(), fc.bigInt().map(String), fc.double(), fc.string({ unit: 'binary' }));
  const changes = fc.array(fc.tuple(name, noise), { maxLength: 3 });
  const changed = fc.tuple(valid(resolved), changes).map(([value, list]) => ({
    ...(value as object),
    ...Object.fromEntries(list),
  }));
  return fc.oneof({ weight: 4, arbitrary: changed }, { weight: 1, arbitrary: fc.jsonValue() });
}
