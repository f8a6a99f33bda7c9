/** What most end-to-end tests stand on: a real registry with a real Debian image, a server, and a template. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startRegistry, type TestRegistry } from '@aenv/testkit';
import { type ServerHandle, startServer } from './server.ts';

const ROOT = new URL('../../../', import.meta.url).pathname;
/** OCI layout with the tag `bookworm`; made once by tools/debian-image.sh. */
export const DEBIAN_LAYOUT = join(ROOT, '.cache', 'debian-image');

export interface World {
  registry: TestRegistry;
  server: ServerHandle;
  /** Reference of the Debian image in the registry. */
  image: string;
  /** Options that lead an SDK to the server. */
  connection: { apiKey: string; apiUrl: string; sandboxUrl: string };
  destroy(): Promise<void>;
}

export interface BuildOptions {
  name: string;
  image: string;
  cpuCount?: number;
  memoryMB?: number;
  startCmd?: string;
  readyCmd?: string;
}

export function debianLayout(): string {
  if (!existsSync(join(DEBIAN_LAYOUT, 'index.json'))) {
    execFileSync(join(ROOT, 'tools', 'debian-image.sh'), [DEBIAN_LAYOUT], { stdio: ['ignore', 'inherit', 'inherit'] });
  }
  return DEBIAN_LAYOUT;
}

export async function createWorld(env: Record<string, string> = {}): Promise<World> {
  const layout = debianLayout();
  const registry = await startRegistry();
  try {
    await registry.push(`oci:${layout}:bookworm`, 'library/debian:bookworm');
    const image = `${registry.host}/library/debian:bookworm`;
    const server = await startServer(env);
    const { apiKey, url } = server;
    return {
      registry,
      server,
      image,
      connection: { apiKey, apiUrl: url, sandboxUrl: url },
      destroy: async () => {
        try {
          await server.destroy();
        } finally {
          await registry.stop();
        }
      },
    };
  } catch (error) {
    await registry.stop();
    throw error;
  }
}

/** Builds a template by way of the API and waits until it is ready; returns its id. */
export async function buildTemplate(
  server: ServerHandle,
  { name, image, cpuCount = 1, memoryMB = 256, ...commands }: BuildOptions,
): Promise<string> {
  const created = await server.call('POST', '/v3/templates', { name, cpuCount, memoryMB });
  const { templateID, buildID } = created.body as { templateID: string; buildID: string };
  const started = await server.call('POST', `/v2/templates/${templateID}/builds/${buildID}`, {
    fromImage: image,
    ...commands,
  });
  if (started.status !== 202) throw new Error(`the build was refused: ${JSON.stringify(started)}`);
  for (;;) {
    const { body } = await server.call('GET', `/templates/${templateID}/builds/${buildID}/status`);
    const { status, reason } = body as { status: string; reason?: { message: string } };
    if (status === 'ready') return templateID;
    if (status === 'error') throw new Error(`the build failed: ${reason?.message}\n${await server.log()}`);
    await sleep(200);
  }
}
