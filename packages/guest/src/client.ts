/** The host side of the envd protocol: one object per sandbox (and per life of it). */
import { type GuestClientOptions, openConnection } from './connection.ts';
import { type GuestFiles, guestFiles } from './files.ts';
import { type GuestHost, guestHost } from './host.ts';
import { type GuestProcesses, guestProcesses } from './processes.ts';

export interface GuestClient extends GuestHost {
  processes: GuestProcesses;
  files: GuestFiles;
  /** Ends the connections of this client and with them all its streams. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Opens nothing yet: connections are made as they are needed. All calls fail with an AenvError: `guest_unreachable` when
 * the daemon does not answer or the connection is lost, otherwise what the daemon (or the proxy before it) says.
 */
export function createGuestClient(options: GuestClientOptions): GuestClient {
  const connection = openConnection(options);
  return {
    ...guestHost(connection),
    processes: guestProcesses(connection),
    files: guestFiles(connection),
    close: connection.close,
    [Symbol.asyncDispose]: connection.close,
  };
}
