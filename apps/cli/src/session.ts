/** What the commands share: one client per run, closed at the end. */
import { type AenvClient, createAenvClient, type Sandbox, sandboxGuest } from '@aenv/client';
import type { GuestClient } from '@aenv/guest';
import { AenvError } from '@aenv/std';
import { type ServerAccess, serverAccess } from './credentials.ts';

export async function withClient<T>(work: (client: AenvClient, server: ServerAccess) => Promise<T>): Promise<T> {
  const server = serverAccess();
  await using client = createAenvClient(server);
  return await work(client, server);
}

type SandboxAccess = Pick<Sandbox, 'sandboxID' | 'envdAccessToken'>;

/** A client of the daemon in this sandbox. */
export function guestOf(server: ServerAccess, sandbox: SandboxAccess, user?: string): GuestClient {
  return sandboxGuest({
    url: server.url,
    sandboxId: sandbox.sandboxID,
    accessToken: sandbox.envdAccessToken,
    user,
  });
}

/** For commands that need a running sandbox and do not wake a paused one. */
export async function withRunningGuest<T>(
  id: string,
  user: string | undefined,
  work: (guest: GuestClient) => Promise<T>,
): Promise<T> {
  return await withClient(async (client, server) => {
    const sandbox = await client.sandboxes.get(id);
    if (sandbox.state === 'paused') {
      throw new AenvError('sandbox_paused', `sandbox ${id} is paused`, { remedy: `Resume it: aenv resume ${id}` });
    }
    await using guest = guestOf(server, sandbox, user);
    return await work(guest);
  });
}
