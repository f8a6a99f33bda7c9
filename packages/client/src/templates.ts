/** Templates and their builds through the API. */
import type { Schema } from '@aenv/protocol';
import { type Connection, unwrap, unwrapWithHeaders } from './transport.ts';

/** Without what is always null. */
export type Template = Omit<Schema<'Template'>, 'createdBy'>;
export type TemplateDetail = Schema<'TemplateWithBuilds'>;
export type BuildInfo = Schema<'BuildInfo'>;
export type BuildLogEntry = Schema<'BuildLogEntry'>;

export interface BuildIds {
  templateID: string;
  buildID: string;
}

export interface AenvTemplates {
  /** All pages, newest first. */
  list(): Promise<Template[]>;
  /** By id or name, with its newest builds first. `template_not_found`. */
  get(idOrName: string): Promise<TemplateDetail>;
  /** `template_not_found`, `template_in_use`. */
  delete(idOrName: string): Promise<void>;
  /** Registers a template, or a new build of one that exists. */
  request(template: Schema<'NewTemplate'>): Promise<BuildIds>;
  /** Answers at once; the build goes on in the background. */
  startBuild(ids: BuildIds, build: Schema<'StartBuild'>): Promise<void>;
  /** The state, and up to 100 log entries after the first `logsOffset`. */
  buildStatus(ids: BuildIds, logsOffset: number): Promise<BuildInfo>;
}

export function aenvTemplates({ api }: Connection): AenvTemplates {
  const at = (templateID: string) => ({ path: { templateID } });
  return {
    async list() {
      const found: Template[] = [];
      let nextToken: string | undefined;
      do {
        const page = await unwrapWithHeaders(api.GET('/v2/templates', { params: { query: { nextToken } } }));
        found.push(...page.data);
        nextToken = page.headers.get('x-next-token') ?? undefined;
      } while (nextToken);
      return found;
    },
    get: (idOrName) => unwrap(api.GET('/templates/{templateID}', { params: at(idOrName) })),
    delete: async (idOrName) => void (await unwrap(api.DELETE('/templates/{templateID}', { params: at(idOrName) }))),
    request: async (body) => {
      const { templateID, buildID } = await unwrap(api.POST('/v3/templates', { body }));
      return { templateID, buildID };
    },
    startBuild: async (path, body) =>
      void (await unwrap(api.POST('/v2/templates/{templateID}/builds/{buildID}', { params: { path }, body }))),
    buildStatus: (path, logsOffset) =>
      unwrap(api.GET('/templates/{templateID}/builds/{buildID}/status', { params: { path, query: { logsOffset } } })),
  };
}
