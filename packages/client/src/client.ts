/** Typed client of an AgentENV server: the API, and the way into its sandboxes through the proxy. */
import { createGuestClient, ENVD_PORT, type GuestClient } from '@aenv/guest';
import type { Schema } from '@aenv/protocol';
import { type AenvSandboxes, aenvSandboxes } from './sandboxes.ts';
import { type AenvSnapshots, aenvSnapshots } from './snapshots.ts';
import { type AenvTemplates, aenvTemplates } from './templates.ts';
import { type AenvClientOptions, LISTS, openConnection, unwrap } from './transport.ts';

export type DoctorReport = Schema<'DoctorReport'>;

export type AuditReport = Schema<'AuditReport'>;
export type Garbage = Schema<'Garbage'>;
export type Node = Schema<'Node'>;
export type Operation = Schema<'Operation'>;

export interface AenvClient {
  sandboxes: AenvSandboxes;
  templates: AenvTemplates;
  snapshots: AenvSnapshots;
  /** Resolves when the server takes requests. Needs no key. */
  health(): Promise<void>;
  /** What the machine has and lacks. */
  doctor(): Promise<DoctorReport>;
  /** Frees what can be made again and nothing needs. */
  collectGarbage(dryRun: boolean): Promise<Garbage[]>;
  /** What the machine has to give, and what it has promised. */
  node(): Promise<Node>;
  /** What no record owns and what records miss; with `repair`, the former is removed. Takes a second or two. */
  audit(repair: boolean): Promise<AuditReport>;
  /** Long operations in progress and those that ended lately, newest first; with an id only those of that sandbox. */
  operations(query: { sandboxID?: string; state?: Operation['state'][] }): Promise<Operation[]>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** All calls fail with an AenvError: `server_unreachable`, or what the server says, with its remedy. */
export function createAenvClient(options: AenvClientOptions): AenvClient {
  const connection = openConnection(options);
  return {
    sandboxes: aenvSandboxes(connection),
    templates: aenvTemplates(connection),
    snapshots: aenvSnapshots(connection),
    health: async () => void (await unwrap(connection.api.GET('/health'))),
    doctor: () => unwrap(connection.api.GET('/doctor')),
    collectGarbage: (dryRun) => unwrap(connection.api.POST('/gc', { body: { dryRun } })),
    node: () => unwrap(connection.api.GET('/node')),
    audit: (repair) => unwrap(repair ? connection.api.POST('/audit') : connection.api.GET('/audit')),
    operations: (query) => unwrap(connection.api.GET('/operations', { params: { query }, querySerializer: LISTS })),
    close: connection.close,
    [Symbol.asyncDispose]: connection.close,
  };
}

export interface SandboxAddress {
  /** `http://host:port` of the server. */
  url: string;
  sandboxId: string;
  /** Of a secure sandbox. */
  accessToken?: string;
  /** Whom requests act as; absent: the sandbox's default user. */
  user?: string;
}

/** A client of the daemon in a sandbox, by way of the server's proxy (headers E2b-Sandbox-Id and E2b-Sandbox-Port). */
export function sandboxGuest({ url, sandboxId, accessToken, user }: SandboxAddress): GuestClient {
  return createGuestClient({
    origin: url,
    headers: { 'e2b-sandbox-id': sandboxId, 'e2b-sandbox-port': String(ENVD_PORT) },
    accessToken,
    user,
  });
}
