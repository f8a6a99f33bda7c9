import assert from 'node:assert/strict';
import { test } from 'node:test';
import { API_SCHEMAS, OPERATION_IDS, OPERATIONS, operationInfo } from './api.ts';

test('every reference of an operation and of a schema names a schema that is there', () => {
  const references = [...JSON.stringify([OPERATIONS, API_SCHEMAS]).matchAll(/"\$ref":"([^"]*)"/g)];
  assert.ok(references.length > 50);
  for (const [, reference = ''] of references) {
    const name = reference.replace(`${API_SCHEMAS.$id}#/$defs/`, '');
    assert.ok(name in API_SCHEMAS.$defs, reference);
  }
});

test('an operation is either refused or has an answer that means success', () => {
  for (const id of OPERATION_IDS) {
    const { refused, responses } = operationInfo(id);
    assert.equal(refused === undefined, Object.keys(responses).length > 0, id);
  }
});

test('only health needs no key, and a method with a path is one operation', () => {
  assert.deepEqual(
    OPERATION_IDS.filter((id) => operationInfo(id).security.length === 0),
    ['health'],
  );
  const routes = OPERATION_IDS.map((id) => `${operationInfo(id).method} ${operationInfo(id).path}`);
  assert.equal(new Set(routes).size, routes.length);
});
