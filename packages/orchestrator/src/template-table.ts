/** Rows of templates, their names, tags, builds and build logs. */
import type { DatabaseSync } from 'node:sqlite';
import { AenvError } from '@aenv/std';
import { transaction } from './database.ts';
import type { BuildStatus, BuildView, LogEntry, TemplateView } from './engine.ts';

export const DEFAULT_TAG = 'default';
/** Reported for every build; the protocol version that aenvd speaks. */
const ENVD_VERSION = '0.6.13';

/** What every sandbox of a build tells its guest daemon. From the image's configuration. */
export interface GuestSettings {
  env: Record<string, string>;
  user: string;
  workdir: string;
  /** Secret between the server and the guest daemons of this build. */
  initKey: string;
}

export interface BuildRow extends BuildView {
  guest?: GuestSettings;
  /** The build whose disk (for a snapshot also: whose memory) this one's stands on; absent when it stands on an image. */
  baseBuildId?: string;
  /** The sandbox that this is a snapshot of. */
  sourceSandboxId?: string;
  /** Of a snapshot: it has no memory. */
  diskOnly?: boolean;
  /** Tags that name the build once it is ready. */
  tags: string[];
}

interface RawBuild {
  id: string;
  template_id: string;
  status: BuildStatus;
  created_at: number;
  updated_at: number;
  finished_at: number | null;
  cpu_count: number;
  memory_mb: number;
  disk_mb: number | null;
  base_build_id: string | null;
  source_sandbox_id: string | null;
  disk_only: number;
  tags_json: string;
  guest_json: string | null;
  reason_message: string | null;
  reason_step: string | null;
}

interface RawTemplate {
  id: string;
  created_at: number;
  updated_at: number;
  spawn_count: number;
  last_spawned_at: number | null;
}

function fromRawBuild(raw: RawBuild): BuildRow {
  return {
    id: raw.id,
    templateId: raw.template_id,
    status: raw.status,
    createdAt: raw.created_at,
    updatedAt: raw.updated_at,
    finishedAt: raw.finished_at ?? undefined,
    cpuCount: raw.cpu_count,
    memoryMb: raw.memory_mb,
    diskSizeMb: raw.disk_mb ?? undefined,
    envdVersion: ENVD_VERSION,
    tags: JSON.parse(raw.tags_json) as string[],
    ...(raw.base_build_id === null ? {} : { baseBuildId: raw.base_build_id }),
    ...(raw.source_sandbox_id === null ? {} : { sourceSandboxId: raw.source_sandbox_id }),
    ...(raw.disk_only === 1 ? { diskOnly: true } : {}),
    guest: raw.guest_json === null ? undefined : (JSON.parse(raw.guest_json) as GuestSettings),
    reason: raw.reason_message === null ? undefined : { message: raw.reason_message, step: raw.reason_step ?? 'base' },
  };
}

/** The view of a build without what only the server may know. */
export function publicBuild({
  guest: _guest,
  baseBuildId: _base,
  sourceSandboxId: _source,
  diskOnly: _diskOnly,
  tags: _tags,
  ...view
}: BuildRow): BuildView {
  return view;
}

export class TemplateTable {
  readonly #database: DatabaseSync;

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** Adds a build, and its template with this name when it is new. */
  addBuild(build: BuildRow, name?: string): void {
    transaction(this.#database, () => {
      this.#database
        .prepare(
          'INSERT INTO templates (id, created_at, updated_at) VALUES (?1, ?2, ?2) ON CONFLICT (id) DO UPDATE SET updated_at = ?2',
        )
        .run(build.templateId, build.createdAt);
      if (name !== undefined) {
        this.#database
          .prepare('INSERT OR IGNORE INTO names (name, template_id) VALUES (?, ?)')
          .run(name, build.templateId);
      }
      this.putBuild(build);
      // A tag of a ready build moves only when the new build is ready too (`assignTags`).
      for (const tag of build.tags) {
        this.#database
          .prepare('INSERT OR IGNORE INTO tags (template_id, tag, build_id) VALUES (?, ?, ?)')
          .run(build.templateId, tag, build.id);
      }
    });
  }

  putBuild(build: BuildRow): void {
    this.#database
      .prepare(
        `INSERT INTO builds (id, template_id, status, created_at, updated_at, finished_at, cpu_count, memory_mb, disk_mb,
           base_build_id, source_sandbox_id, disk_only, tags_json, guest_json, reason_message, reason_step)
         VALUES (:id, :template, :status, :created, :updated, :finished, :cpus, :memory, :disk,
           :base, :source, :diskOnly, :tags, :guest, :message, :step)
         ON CONFLICT (id) DO UPDATE SET status = excluded.status, updated_at = excluded.updated_at,
           finished_at = excluded.finished_at, disk_mb = excluded.disk_mb, base_build_id = excluded.base_build_id,
           tags_json = excluded.tags_json, guest_json = excluded.guest_json,
           reason_message = excluded.reason_message, reason_step = excluded.reason_step`,
      )
      .run({
        id: build.id,
        template: build.templateId,
        status: build.status,
        created: build.createdAt,
        updated: build.updatedAt,
        finished: build.finishedAt ?? null,
        cpus: build.cpuCount,
        memory: build.memoryMb,
        disk: build.diskSizeMb ?? null,
        base: build.baseBuildId ?? null,
        source: build.sourceSandboxId ?? null,
        diskOnly: build.diskOnly ? 1 : 0,
        tags: JSON.stringify(build.tags),
        guest: build.guest ? JSON.stringify(build.guest) : null,
        message: build.reason?.message ?? null,
        step: build.reason?.step ?? null,
      });
  }

  /** Records a build as ready, and its tags as naming it. */
  putReady(build: BuildRow): void {
    transaction(this.#database, () => {
      this.putBuild(build);
      const put = this.#database.prepare(
        `INSERT INTO tags (template_id, tag, build_id) VALUES (?, ?, ?)
         ON CONFLICT DO UPDATE SET build_id = excluded.build_id`,
      );
      for (const tag of build.tags) put.run(build.templateId, tag, build.id);
    });
  }

  build(buildId: string): BuildRow | undefined {
    const raw = this.#database.prepare('SELECT * FROM builds WHERE id = ?').get(buildId);
    return raw === undefined ? undefined : fromRawBuild(raw as unknown as RawBuild);
  }

  builds(): BuildRow[] {
    const rows = this.#database.prepare('SELECT * FROM builds ORDER BY created_at DESC, rowid DESC').all();
    return (rows as unknown as RawBuild[]).map(fromRawBuild);
  }

  /** Builds of the template, newest first. */
  buildsOf(templateId: string): BuildRow[] {
    const rows = this.#database
      .prepare('SELECT * FROM builds WHERE template_id = ? ORDER BY created_at DESC, rowid DESC')
      .all(templateId);
    return (rows as unknown as RawBuild[]).map(fromRawBuild);
  }

  /** Templates with a build that stands on one of `buildIds` and is none of them. */
  templatesBuiltOn(buildIds: ReadonlySet<string>): string[] {
    const children = this.#database.prepare('SELECT id, template_id FROM builds WHERE base_build_id = ?');
    const others = [...buildIds].flatMap((id) => children.all(id)).filter(({ id }) => !buildIds.has(id as string));
    return [...new Set(others.map((row) => row.template_id as string))];
  }

  templateIdByName(name: string): string | undefined {
    return this.#database.prepare('SELECT template_id FROM names WHERE name = ?').get(name)?.template_id as
      | string
      | undefined;
  }

  firstName(templateId: string): string | undefined {
    return this.#database.prepare('SELECT name FROM names WHERE template_id = ? ORDER BY rowid LIMIT 1').get(templateId)
      ?.name as string | undefined;
  }

  /** `text` is an id, a name, or either with `:tag`; the template and the build that the tag names. */
  resolve(text: string): { templateId: string; build: BuildRow } {
    const [name = '', tag = DEFAULT_TAG] = text.trim().toLowerCase().split(':', 2);
    const templateId = this.templateIdByName(name) ?? name;
    const raw = this.#database
      .prepare(
        'SELECT builds.* FROM tags JOIN builds ON builds.id = tags.build_id WHERE tags.template_id = ? AND tags.tag = ?',
      )
      .get(templateId, tag);
    if (raw === undefined) {
      throw new AenvError('template_not_found', `template '${text}' not found`, {
        remedy: 'List what there is with `aenv template list`, or make it with `aenv pull IMAGE`.',
      });
    }
    return { templateId, build: fromRawBuild(raw as unknown as RawBuild) };
  }

  /**
   * The snapshot or template that a start from `text` means. A snapshot whose newest attempt under this tag is not ready is
   * refused (`conflict`): an older state is nothing to hand out silently. `allowOlder` says that it is welcome.
   */
  resolveNewest(text: string, allowOlder: boolean): { templateId: string; build: BuildRow } {
    const found = this.resolve(text);
    if (allowOlder || found.build.sourceSandboxId === undefined) return found;
    const [, tag = DEFAULT_TAG] = text.trim().toLowerCase().split(':', 2);
    const newest = this.buildsOf(found.templateId).find(({ tags }) => tags.includes(tag));
    if (newest?.sourceSandboxId === undefined || newest.id === found.build.id) return found;
    const why = newest.reason ? `: ${newest.reason.message}` : '';
    const state = newest.status === 'error' ? 'failed' : 'is not ready yet';
    throw new AenvError('conflict', `the newest snapshot '${text}' ${state}${why}; what is there is older`, {
      remedy: 'Take it again, wait for it, or ask for the older one with allowOlder (--allow-older).',
    });
  }

  view(templateId: string): TemplateView {
    const raw = this.#database.prepare('SELECT * FROM templates WHERE id = ?').get(templateId) as
      | RawTemplate
      | undefined;
    if (!raw) throw new AenvError('template_not_found', `template '${templateId}' not found`);
    const names = this.#database.prepare('SELECT name FROM names WHERE template_id = ? ORDER BY rowid').all(templateId);
    const tags = this.#database
      .prepare('SELECT tag, build_id FROM tags WHERE template_id = ? ORDER BY tag')
      .all(templateId);
    const builds = this.buildsOf(templateId);
    const startedId = tags.find((row) => row.tag === DEFAULT_TAG)?.build_id;
    const build = builds.find((row) => row.id === startedId) ?? builds[0];
    if (!build) throw new AenvError('template_not_found', `template '${templateId}' has no build`);
    return {
      id: raw.id,
      build: publicBuild(build),
      builds: builds.map(publicBuild),
      names: names.map((row) => row.name as string),
      tags: tags.map((row) => row.tag as string),
      createdAt: raw.created_at,
      updatedAt: raw.updated_at,
      lastSpawnedAt: raw.last_spawned_at ?? undefined,
      spawnCount: raw.spawn_count,
    };
  }

  /** All but snapshots. */
  views(): TemplateView[] {
    const rows = this.#database
      .prepare(
        `SELECT id FROM templates WHERE NOT EXISTS
           (SELECT 1 FROM builds WHERE template_id = templates.id AND source_sandbox_id IS NOT NULL)
         ORDER BY created_at DESC, id`,
      )
      .all();
    return rows.map((row) => this.view(row.id as string));
  }

  countSpawn(templateId: string, at: number): void {
    this.#database
      .prepare('UPDATE templates SET spawn_count = spawn_count + 1, last_spawned_at = ? WHERE id = ?')
      .run(at, templateId);
  }

  deleteTemplate(templateId: string): void {
    transaction(this.#database, () => {
      this.#deleteBuilds(this.buildsOf(templateId).map(({ id }) => id));
      this.#database.prepare('DELETE FROM templates WHERE id = ?').run(templateId);
    });
  }

  /** Deletes some of a template's builds, the tags that name them, and their holds on layers. */
  deleteBuilds(ids: ReadonlySet<string>): void {
    transaction(this.#database, () => this.#deleteBuilds([...ids]));
  }

  #deleteBuilds(ids: string[]): void {
    for (const id of ids) {
      this.#database.prepare('UPDATE builds SET base_build_id = NULL WHERE id = ?').run(id);
      this.#database.prepare('DELETE FROM layers WHERE holder = ?').run(id);
    }
    for (const id of ids) this.#database.prepare('DELETE FROM builds WHERE id = ?').run(id);
  }

  log(buildId: string, entry: LogEntry): void {
    this.#database
      .prepare('INSERT INTO build_logs (build_id, entry_json) VALUES (?, ?)')
      .run(buildId, JSON.stringify(entry));
  }

  logs(buildId: string): LogEntry[] {
    const rows = this.#database
      .prepare('SELECT entry_json FROM build_logs WHERE build_id = ? ORDER BY seq')
      .all(buildId);
    return rows.map((row) => JSON.parse(row.entry_json as string) as LogEntry);
  }
}
