/** Pages over lists that are ordered by time, then id; `X-Next-Token` says where the next page starts. */
import { badRequest } from './errors.ts';

export type Order = 'asc' | 'desc';

export interface Position {
  /** Milliseconds since the epoch. */
  at: number;
  id: string;
}

export interface PageQuery {
  order?: Order;
  limit?: number;
  nextToken?: string;
}

const DEFAULT_LIMIT = 100;
const TOKEN = /^(\d{1,16})__([A-Za-z0-9-]{1,64})__(asc|desc)$/;

/** Newest first, equal times by id; `asc` is the exact reverse. */
function compare(a: Position, b: Position, order: Order): number {
  const descending = b.at - a.at || (a.id < b.id ? -1 : Number(a.id > b.id));
  return order === 'desc' ? descending : -descending;
}

function encodeToken(position: Position, order: Order): string {
  return Buffer.from(`${position.at}__${position.id}__${order}`).toString('base64url');
}

function decodeToken(token: string, order: Order): Position {
  const [, at, id, ofOrder] = TOKEN.exec(Buffer.from(token, 'base64url').toString('latin1')) ?? [];
  if (at === undefined || id === undefined) throw badRequest('query.nextToken is not a token of this list.');
  if (ofOrder !== order) throw badRequest('query.nextToken was made for the other order.');
  return { at: Number(at), id };
}

/**
 * One page of `items`. The token holds the position of the last item rather than a count, so items that come and go
 * between two pages neither repeat nor hide others. Throws `bad_request` for a token that is not one of its own.
 */
export function page<Item>(
  items: Item[],
  position: (item: Item) => Position,
  query: PageQuery,
): { items: Item[]; headers: Record<string, string> } {
  const order = query.order ?? 'desc';
  const limit = query.limit ?? DEFAULT_LIMIT;
  const after = query.nextToken === undefined ? undefined : decodeToken(query.nextToken, order);
  const rest = items
    .filter((item) => after === undefined || compare(position(item), after, order) > 0)
    .sort((a, b) => compare(position(a), position(b), order));
  const shown = rest.slice(0, limit);
  const last = shown.at(-1);
  if (last === undefined || rest.length === shown.length) return { items: shown, headers: {} };
  return { items: shown, headers: { 'x-next-token': encodeToken(position(last), order) } };
}
