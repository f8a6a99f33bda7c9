/** Host side of the guest daemon's protocol. */
export { createGuestClient, type GuestClient } from './client.ts';
export { ENVD_PORT, type GuestAddress, type GuestClientOptions, type GuestOrigin } from './connection.ts';
export { errorFromResponse } from './errors.ts';
export type { ProcessExit } from './exit.ts';
export type {
  FileAccess,
  FileContent,
  FileKind,
  GuestFileInfo,
  GuestFiles,
  ReadOptions,
  WatchEvent,
  WatchEventKind,
} from './files.ts';
export type { GuestHost, GuestInit, GuestUsage } from './host.ts';
export type {
  GuestProcess,
  GuestProcesses,
  GuestProcessInfo,
  OutputHandler,
  OutputStream,
  StartOptions,
  TerminalSize,
  WatchOptions,
} from './processes.ts';
