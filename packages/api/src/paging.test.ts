import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Order, type Position, page } from './paging.ts';

const items = fc.uniqueArray(fc.record({ at: fc.nat(5), id: fc.stringMatching(/^[a-z0-9]{1,3}$/) }), {
  selector: (item) => item.id,
});
const order = fc.constantFrom<Order>('asc', 'desc');
const identity = (item: Position) => item;

function allPages(
  list: Position[],
  query: { order: Order; limit: number },
  between = (l: Position[]) => l,
): Position[] {
  const seen: Position[] = [];
  let current = list;
  let nextToken: string | undefined;
  do {
    const { items: shown, headers } = page(current, identity, { ...query, nextToken });
    assert.ok(shown.length <= query.limit);
    seen.push(...shown);
    nextToken = headers['x-next-token'];
    assert.ok(nextToken === undefined || shown.length === query.limit, 'only the last page may be short');
    current = between(current);
  } while (nextToken !== undefined);
  return seen;
}

test('the pages together are the whole list, once, in order', () => {
  fc.assert(
    fc.property(items, order, fc.integer({ min: 1, max: 4 }), (list, by, limit) => {
      const seen = allPages(list, { order: by, limit });
      assert.deepEqual(new Set(seen), new Set(list));
      assert.equal(seen.length, list.length);
      const times = seen.map((item) => item.at);
      const sorted = times.toSorted((a, b) => (by === 'asc' ? a - b : b - a));
      assert.deepEqual(times, sorted);
    }),
  );
});

test('ascending is the exact reverse of descending', () => {
  fc.assert(
    fc.property(items, (list) => {
      const asc = page(list, identity, { order: 'asc', limit: 1000 }).items;
      assert.deepEqual(asc.toReversed(), page(list, identity, { order: 'desc', limit: 1000 }).items);
    }),
  );
});

test('what stays between two pages is neither hidden nor repeated by what goes', () => {
  fc.assert(
    fc.property(items, order, fc.nat(), (list, by, seed) => {
      const removed: Position[] = [];
      const between = (l: Position[]) => {
        const victim = l[seed % Math.max(1, l.length)];
        if (victim !== undefined) removed.push(victim);
        return l.filter((item) => item !== victim);
      };
      const seen = allPages(list, { order: by, limit: 2 }, between);
      assert.equal(new Set(seen).size, seen.length);
      for (const item of list) assert.ok(seen.includes(item) || removed.includes(item));
    }),
  );
});

test('a token of the other order, and any text that is no token, is refused', () => {
  const list = [
    { at: 1, id: 'a' },
    { at: 2, id: 'b' },
  ];
  const { headers } = page(list, identity, { order: 'asc', limit: 1 });
  const nextToken = headers['x-next-token'];
  assert.ok(nextToken);
  assert.throws(() => page(list, identity, { order: 'desc', nextToken }), { code: 'bad_request' });
  fc.assert(
    fc.property(fc.string(), (text) => {
      assert.throws(() => page(list, identity, { nextToken: text }), { code: 'bad_request' });
    }),
  );
});
