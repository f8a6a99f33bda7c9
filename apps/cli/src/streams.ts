/** Writing to our own standard streams. */
import { once } from 'node:events';

/** Resolves when the stream takes more: output is read no faster than it is written. */
export async function writeTo(stream: NodeJS.WriteStream, bytes: Uint8Array): Promise<void> {
  if (!stream.write(bytes)) await once(stream, 'drain');
}
