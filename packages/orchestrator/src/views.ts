/** From rows to what the engine shows. */
import type { SandboxFilter, SandboxRoute, SandboxState, SandboxView } from './engine.ts';
import type { SandboxRow } from './sandbox-table.ts';
import type { BuildRow } from './template-table.ts';

const ENVD_VERSION = '0.6.13';

/** A sandbox on its way from or to the disk shows as what a client may rely on. */
function publicState(row: SandboxRow): SandboxState {
  return row.phase === 'pausing' || row.phase === 'paused' ? 'paused' : 'running';
}

export function sandboxView(row: SandboxRow, build: BuildRow, alias: string | undefined): SandboxView {
  const { settings } = row;
  return {
    id: row.id,
    templateId: row.templateId,
    ...(alias === undefined ? {} : { alias }),
    state: publicState(row),
    startedAt: row.startedAt,
    endAt: row.endAt,
    cpuCount: build.cpuCount,
    memoryMb: build.memoryMb,
    diskSizeMb: build.diskSizeMb ?? 0,
    metadata: settings.metadata,
    envdVersion: build.envdVersion ?? ENVD_VERSION,
    ...(row.token === undefined ? {} : { envdAccessToken: row.token }),
    allowInternetAccess: settings.allowInternetAccess,
    autoResume: settings.autoResume,
    onTimeout: settings.onTimeout,
  };
}

/** Whether a sandbox that clients may see passes `filter`; `templateId` is the resolved one of `filter.template`. */
export function matches(row: SandboxRow, filter: SandboxFilter, templateId: string | undefined): boolean {
  if (row.phase === 'killing' || row.phase === 'starting') return false;
  if (filter.states && !filter.states.includes(publicState(row))) return false;
  if (filter.template !== undefined && row.templateId !== templateId) return false;
  if (filter.startedAfter !== undefined && row.startedAt < filter.startedAfter) return false;
  return Object.entries(filter.metadata ?? {}).every(([key, value]) => row.settings.metadata[key] === value);
}

/** Where the proxy sends requests for the sandbox of `row`. */
export function sandboxRoute(row: SandboxRow | undefined): SandboxRoute {
  if (!row) return { kind: 'unknown' };
  const { phase, run, settings, token } = row;
  if ((phase === 'running' || phase === 'capturing' || phase === 'rolling_back') && run) {
    return { kind: 'running', address: run.slot.hostAddress, secure: token !== undefined };
  }
  if (phase === 'paused' || phase === 'pausing' || phase === 'resuming') {
    return {
      kind: 'paused',
      autoResume: settings.autoResume,
      ...(token === undefined ? {} : { envdAccessToken: token }),
    };
  }
  return { kind: 'unknown' };
}
