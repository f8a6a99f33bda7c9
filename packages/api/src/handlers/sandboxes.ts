/** Sandboxes: start, list, look at, pause, resume, prolong, kill, measure. */
import type {
  CreateCold,
  CreateSandbox,
  Engine,
  MemoryOption,
  SandboxMetric,
  SandboxSettings,
} from '@aenv/orchestrator';
import type { Schema } from '@aenv/protocol';
import { AenvError } from '@aenv/std';
import type { Handlers } from '../binder.ts';
import { badRequest } from '../errors.ts';
import { parseMetadataFilter } from '../metadata-filter.ts';
import { sandboxId, templateName } from '../names.ts';
import { type Order, page } from '../paging.ts';
import { refuse, refuseForSandbox } from '../refusals.ts';
import { registryCredentials } from '../registry.ts';
import * as views from '../views.ts';

/** Seconds, as in E2B's API. */
const TIMEOUT_V1 = 15;
const TIMEOUT_V2 = 300;
const LEAST_REFRESH = 15;

type SandboxRequest = Schema<'NewSandbox'> | Schema<'NewSandboxV2'> | Schema<'NewColdSandbox'>;

function settings(body: SandboxRequest, defaultTimeout: number, secure: boolean): SandboxSettings {
  refuseForSandbox(body);
  return {
    timeoutSeconds: body.timeout ?? defaultTimeout,
    onTimeout: body.autoPause ? 'pause' : 'kill',
    pauseMemory: body.autoPauseMemory ?? true,
    autoResume: body.autoResume?.enabled ?? false,
    secure,
    allowInternetAccess: body.allow_internet_access ?? true,
    metadata: body.metadata ?? {},
    envVars: body.envVars ?? {},
  };
}

function fromTemplate(body: Schema<'NewSandbox'> | Schema<'NewSandboxV2'>, given: SandboxSettings): CreateSandbox {
  return {
    ...given,
    template: templateName(body.templateID),
    ...(body.allowOlder === undefined ? {} : { allowOlder: body.allowOlder }),
  };
}

function coldRequest(body: Schema<'NewColdSandbox'>): CreateCold {
  return {
    ...settings(body, TIMEOUT_V2, body.secure ?? true),
    image: body.image,
    cpuCount: body.cpuCount,
    memoryMb: body.memoryMB,
    diskSizeMb: body.diskSizeMB,
    credentials: registryCredentials(body.imageRegistry),
  };
}

/** `date` has passed the contract's format check, which a leap second passes too. */
function milliseconds(date: string | undefined): number | undefined {
  if (date === undefined) return undefined;
  const value = Date.parse(date);
  if (Number.isNaN(value)) throw badRequest('query.startedAfter is not a date.');
  return value;
}

/** A sandbox that went away meanwhile has no sample. */
async function newestSample(engine: Engine, id: string): Promise<SandboxMetric | undefined> {
  try {
    return (await engine.sandboxMetrics(id, {})).at(-1);
  } catch (error) {
    if (error instanceof AenvError && error.code === 'sandbox_not_found') return undefined;
    throw error;
  }
}

async function newestSamples(engine: Engine, ids: string[]): Promise<Schema<'SandboxesWithMetrics'>> {
  const unique = [...new Set(ids)];
  const samples = await Promise.all(unique.map((id) => newestSample(engine, id)));
  const pairs = unique.map((id, index) => [id, samples[index]] as const);
  return {
    sandboxes: Object.fromEntries(
      pairs.flatMap(([id, sample]) => (sample === undefined ? [] : [[id, views.metric(sample)]])),
    ),
  };
}

async function connect(
  engine: Engine,
  domain: string | null,
  given: string,
  body: MemoryOption | undefined,
  timeoutSeconds: number,
) {
  const { sandbox, resumed } = await engine.connectSandbox(sandboxId(given), timeoutSeconds, body);
  return { status: resumed ? (201 as const) : (200 as const), body: views.sandbox(sandbox, domain) };
}

interface ListQuery {
  metadata?: string;
  state?: ('running' | 'paused')[];
  order?: Order;
  startedAfter?: string;
  template?: string;
  nextToken?: string;
  limit?: number;
}

function list(engine: Engine, query: ListQuery) {
  const found = engine.listSandboxes({
    states: query.state,
    metadata: parseMetadataFilter(query.metadata),
    startedAfter: milliseconds(query.startedAfter),
    template: query.template === undefined ? undefined : templateName(query.template),
  });
  const { items, headers } = page(found, (view) => ({ at: view.startedAt, id: view.id }), query);
  const running = found.filter((view) => view.state === 'running').length;
  return { items, headers: { ...headers, 'x-total-running': String(running) } };
}

export function sandboxHandlers(engine: Engine, domain: string | null) {
  return {
    createSandbox: async ({ body, once }) => {
      const request = fromTemplate(body, settings(body, TIMEOUT_V1, body.secure ?? false));
      return { status: 201, body: views.sandbox(await engine.createSandbox(request, once), domain) };
    },
    createSandboxV2: async ({ body, once }) => {
      const request = fromTemplate(body, settings(body, TIMEOUT_V2, true));
      return { status: 201, body: views.sandbox(await engine.createSandbox(request, once), domain) };
    },
    createColdSandbox: async ({ body, once }) => ({
      status: 201,
      body: views.sandbox(await engine.createCold(coldRequest(body), once), domain),
    }),
    listRunningSandboxes: ({ query }) => {
      const { items } = list(engine, { ...query, state: ['running'], limit: Number.POSITIVE_INFINITY });
      return { status: 200, body: items.map(views.listedSandbox) };
    },
    listSandboxes: ({ query }) => {
      const { items, headers } = list(engine, query);
      return { status: 200, body: items.map(views.listedSandbox), headers };
    },
    getSandbox: ({ params }) => ({
      status: 200,
      body: views.sandboxDetail(engine.getSandbox(sandboxId(params.sandboxID)), domain),
    }),
    killSandbox: async ({ params }) => {
      await engine.killSandbox(sandboxId(params.sandboxID));
      return { status: 204, body: undefined };
    },
    pauseSandbox: async ({ params, body }) => {
      await engine.pauseSandbox(sandboxId(params.sandboxID), body);
      return { status: 204, body: undefined };
    },
    resumeSandbox: async ({ params, body }) => {
      const id = sandboxId(params.sandboxID);
      if (body?.autoPause) refuse(engine.getSandbox(id).onTimeout !== 'pause', 'Changing autoPause with a resume');
      const view = await engine.resumeSandbox(id, body?.timeout ?? TIMEOUT_V1, body);
      return { status: 201, body: views.sandbox(view, domain) };
    },
    connectSandbox: ({ params, body }) => connect(engine, domain, params.sandboxID, body, body.timeout),
    connectSandboxV2: ({ params, body }) =>
      connect(engine, domain, params.sandboxID, body, body?.timeout ?? TIMEOUT_V2),
    setSandboxTimeout: async ({ params, body }) => {
      await engine.setTimeout(sandboxId(params.sandboxID), body.timeout);
      return { status: 204, body: undefined };
    },
    refreshSandbox: async ({ params, body }) => {
      await engine.refresh(sandboxId(params.sandboxID), Math.max(LEAST_REFRESH, body?.duration ?? 0));
      return { status: 204, body: undefined };
    },
    getSandboxMetrics: async ({ params, query }) => {
      const range = {
        start: query.start === undefined ? undefined : query.start * 1000,
        end: query.end === undefined ? undefined : query.end * 1000,
      };
      const samples = await engine.sandboxMetrics(sandboxId(params.sandboxID), range);
      return { status: 200, body: samples.map(views.metric) };
    },
    listSandboxMetrics: async ({ query }) => ({ status: 200, body: await newestSamples(engine, query.sandbox_ids) }),
  } satisfies Partial<Handlers>;
}
