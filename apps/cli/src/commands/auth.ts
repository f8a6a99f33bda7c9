/** `aenv auth`: ask for a server and its key, try them, save them. */
import { text } from 'node:stream/consumers';
import { createAenvClient } from '@aenv/client';
import { AenvError } from '@aenv/std';
import { checkedUrl, DEFAULT_URL, saveCredentials } from '../credentials.ts';
import { ask, askSecret } from '../prompt.ts';

async function askFor(options: { url?: string }): Promise<{ url: string; apiKey: string }> {
  if (!process.stdin.isTTY) {
    return {
      url: checkedUrl(options.url ?? process.env.AENV_URL ?? DEFAULT_URL),
      apiKey: (await text(process.stdin)).trim(),
    };
  }
  const url = checkedUrl(options.url ?? ((await ask(`Address of the server [${DEFAULT_URL}]: `)) || DEFAULT_URL));
  return { url, apiKey: await askSecret('API key: ') };
}

export async function auth(options: { url?: string }): Promise<void> {
  const { url, apiKey } = await askFor(options);
  if (!/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new AenvError('bad_request', 'that is not an API key', {
      remedy: 'The server keeps its key in $AENV_HOME/secrets/api-key (/var/lib/aenv unless it was moved).',
    });
  }
  await using client = createAenvClient({ url, apiKey });
  await client.templates.list();
  const file = await saveCredentials({ url, apiKey });
  process.stdout.write(`The key works. Saved in ${file}\n`);
}
