/** Composes the parts into one running server. */
import { statfsSync } from 'node:fs';
import { cpus, freemem, totalmem } from 'node:os';
import { createApi } from '@aenv/api';
import { cpuMillisecondsOf, type Launcher } from '@aenv/linux';
import { createOrchestrator, type DoctorFinding, type GuestPort, type MachineParts } from '@aenv/orchestrator';
import { createListener } from '@aenv/proxy';
import { homeLayout } from '@aenv/snapshot';
import { type Logger, systemClock } from '@aenv/std';
import type { VmmDriver } from '@aenv/vmm';
import { type Address, formatAddress } from './config/kinds.ts';
import type { Config } from './config/settings.ts';
import { lockHome } from './home-lock.ts';
import { type ApiKeys, loadApiKeys } from './keys.ts';
import { createMetricsRegistry, withMetrics } from './metrics.ts';
import { VERSION } from './version.ts';

/** Largest body of an API request; files do not pass through the API. */
const API_BODY_BYTES = 1 << 20;

/** A restore takes less than a second, and on an overloaded machine some. */
const LAUNCH_TIMEOUT_S = 60;

/** What the server needs of the machine that it runs on. */
export interface Machine {
  launcher: Launcher;
  driver: VmmDriver;
  guests: GuestPort;
  /** Kernel and initramfs for new templates. */
  parts: MachineParts;
  inspectHost(): Promise<DoctorFinding[]>;
}

/** A machine on which virtual machines that only wait would be in the way. */
function isTiny(): boolean {
  return cpus().length < 2 || totalmem() < 4 * 2 ** 30;
}

/** Bytes that may still be written. */
function freeDisk(path: string): number {
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize;
}

export type OpenMachine = (config: Config, logger: Logger) => Promise<Machine>;

export interface RunningServer {
  /** Where it listens, with the port that the system chose when 0 was asked for. */
  address: Address;
  keys: ApiKeys;
  /** Stops answering and lets go of everything; virtual machines go on running. */
  close(): Promise<void>;
}

/**
 * What SDKs build `PORT-SANDBOX.DOMAIN` from. Names below localhost lead to this very server, so they need its port; any
 * other domain leads to whatever stands in front of it.
 */
export function advertisedDomain({ domains: [domain = 'localhost'], listen }: Config): string {
  return domain === 'localhost' && listen.port !== 0 ? `localhost:${listen.port}` : domain;
}

/** Rejects with an AenvError and leaves nothing open when a part cannot start. */
export async function startServer(config: Config, logger: Logger, openMachine: OpenMachine): Promise<RunningServer> {
  await using stack = new AsyncDisposableStack();
  const lock = await lockHome(config.home);
  stack.defer(() => lock.release());
  const keys = await loadApiKeys(config.home);

  const machine = await openMachine(config, logger);
  stack.defer(() => machine.launcher.close());

  let forget: (sandboxId: string) => void = () => {};
  let quietSince: (sandboxId: string) => number | undefined = () => undefined;
  const engine = await createOrchestrator({
    home: homeLayout(config.home),
    launcher: machine.launcher,
    driver: machine.driver,
    guests: machine.guests,
    machine: machine.parts,
    inspectHost: machine.inspectHost,
    defaults: { cpuCount: config.cpuCount, memoryMb: config.memoryMb, diskMb: config.diskMb },
    limits: {
      maxTimeoutSeconds: config.maxTimeout,
      maxRunning: config.maxRunning,
      overcommitPercent: config.memoryOvercommit,
      queueSeconds: config.queueTimeout,
      launchTimeoutSeconds: LAUNCH_TIMEOUT_S,
      readyTimeoutSeconds: config.readyTimeout,
    },
    slotPoolSize: config.slotPoolSize,
    pool: { size: isTiny() ? 0 : config.poolSize, maxIdleSeconds: config.poolMaxIdle },
    freeMemoryMb: () => freemem() / 2 ** 20,
    totalMemoryMb: Math.floor(totalmem() / 2 ** 20),
    freeDiskMb: () => freeDisk(config.home) / 2 ** 20,
    idle: {
      pauseAfterSeconds: config.pauseIdleAfter,
      quietSince: (sandboxId) => quietSince(sandboxId),
      cpuMs: cpuMillisecondsOf,
    },
    onRouteChange: (sandboxId) => forget(sandboxId),
    clock: systemClock,
    logger: logger.child({ part: 'orchestrator' }),
  });
  stack.defer(() => engine.close());
  logger.info({ recovered: engine.recovered }, 'state recovered');

  const api = createApi({
    engine,
    isApiKey: keys.isApiKey,
    version: VERSION,
    domain: advertisedDomain(config),
    logger: logger.child({ part: 'api' }),
    limits: { bodyBytes: API_BODY_BYTES },
  });
  await api.ready();
  stack.defer(() => api.close());

  const registry = createMetricsRegistry(() => engine.stats());
  const listener = createListener({
    routes: {
      route: (id) => engine.route(id),
      wake: async (id) => void (await engine.connectSandbox(id, config.wakeTimeout)),
    },
    control: withMetrics(registry, keys.isApiKey, api.handler),
    isApiKey: keys.isApiKey,
    domains: config.domains,
    logger: logger.child({ part: 'proxy' }),
  });
  forget = (sandboxId) => listener.forget(sandboxId);
  quietSince = (sandboxId) => listener.quietSince(sandboxId);
  stack.defer(() => listener.close());
  const { port } = await listener.listen(config.listen);
  const address = { host: config.listen.host, port };
  logger.info({ address: formatAddress(address), home: config.home, version: VERSION }, 'listening');

  const open = stack.move();
  return { address, keys, close: () => open.disposeAsync() };
}
