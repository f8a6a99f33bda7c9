/** Names and tags of templates: `NAME[:TAG]`, as E2B has them. */
import { AenvError } from '@aenv/std';

const NAME = /^[a-z0-9](?:[a-z0-9._/-]{0,126}[a-z0-9])?$/;
const TAG = /^[a-z0-9_][a-z0-9._-]{0,127}$/;

/** Lower-cases and checks `text`; `bad_request` when it is no name. */
export function parseTemplateName(text: string): { name: string; tag?: string } {
  const [name = '', tag, ...rest] = text.trim().toLowerCase().split(':');
  if (rest.length > 0 || !NAME.test(name)) {
    throw new AenvError('bad_request', `"${text}" is no template name`, {
      remedy: 'Use letters, digits, dots, dashes, slashes and underscores, and at most one :TAG.',
    });
  }
  return tag === undefined ? { name } : { name, tag: checkTag(tag) };
}

export function checkTag(tag: string): string {
  if (TAG.test(tag)) return tag;
  throw new AenvError('bad_request', `"${tag}" is no template tag`, {
    remedy: 'Use letters, digits, dots, dashes and underscores, 128 at most.',
  });
}
