/** `aenv logs`. */
import type { AenvClient, SandboxLogEntry } from '@aenv/client';
import { sleep } from '@aenv/std';
import { type OutputFormat, outputFormat, printable } from '../output.ts';
import { withClient } from '../session.ts';

const POLL_MS = 500;
/** What the server gives at once. */
const PAGE = 1000;

/** Entries in order, each once: the cursor is inclusive, so those of its millisecond come again. */
async function* entries(client: AenvClient, id: string, follow: boolean): AsyncGenerator<SandboxLogEntry> {
  let since = 0;
  let seen: string[] = [];
  for (;;) {
    const page = await client.sandboxes.logs(id, since);
    const news = page.filter((entry) => !seen.includes(JSON.stringify(entry)));
    yield* news;
    const newest = page.at(-1)?.timestamp;
    if (newest !== undefined) {
      since = Date.parse(newest);
      seen = page.filter(({ timestamp }) => Date.parse(timestamp) === since).map((entry) => JSON.stringify(entry));
    }
    if (page.length >= PAGE && news.length > 0) continue;
    if (!follow) return;
    await sleep(POLL_MS);
  }
}

export async function logs(id: string, options: { follow?: boolean; output?: OutputFormat }): Promise<void> {
  const json = outputFormat(options.output) === 'json';
  await withClient(async (client) => {
    for await (const entry of entries(client, id, options.follow ?? false)) {
      const line = json
        ? JSON.stringify(entry)
        : `${entry.timestamp}  ${entry.level.padEnd(5)}  ${printable(entry.message)}`;
      process.stdout.write(`${line}\n`);
    }
  });
}
