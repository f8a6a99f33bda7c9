/** Reading request bodies: JSON of bounded size and depth, in valid UTF-8; everything else is refused with a reason. */
import type { FastifyInstance } from 'fastify';
import { badRequest } from './errors.ts';

/** The contract needs 4; deeper documents only cost stack in whatever walks them. */
export const MAX_JSON_DEPTH = 32;

const NOT_JSON = 'The body is not valid JSON, or has a key such as __proto__, which is not accepted.';

const utf8 = new TextDecoder('utf-8', { fatal: true });

function decode(body: Buffer): string {
  try {
    return utf8.decode(body);
  } catch {
    throw badRequest('The body is not valid UTF-8.');
  }
}

/** True when arrays and objects nest deeper than `limit`; brackets in strings do not count. */
export function isDeeperThan(json: string, limit: number): boolean {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < json.length; i++) {
    const character = json[i];
    if (inString) {
      if (character === '\\') i++;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === '{' || character === '[') {
      if (++depth > limit) return true;
    } else if (character === '}' || character === ']') depth--;
  }
  return false;
}

/** Replaces Fastify's parsers. An empty body is `undefined`, with or without a content type: SDKs send both. */
export function addBodyParsers(app: FastifyInstance): void {
  // It refuses `__proto__` and `constructor.prototype`.
  const parseJson = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    if (body.length === 0) return done(null, undefined);
    try {
      const text = decode(body);
      if (isDeeperThan(text, MAX_JSON_DEPTH)) {
        throw badRequest(`The body nests deeper than ${MAX_JSON_DEPTH} levels.`);
      }
      void parseJson(request, text, (error, value) => done(error && badRequest(NOT_JSON), value));
    } catch (error) {
      done(error as Error, undefined);
    }
  });
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body: Buffer, done) => {
    if (body.length === 0) done(null, undefined);
    else done(badRequest('The body is not JSON.', 'Send JSON with Content-Type: application/json.'), undefined);
  });
}
