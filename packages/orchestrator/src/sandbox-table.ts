/** Rows of sandboxes, what happened to them, and how they ended. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { EndCause, SandboxPhase } from '@aenv/lifecycle';
import type { Slot } from '@aenv/linux';
import { AenvError } from '@aenv/std';
import type { VmRecord } from '@aenv/vmm';
import { transaction } from './database.ts';
import type { LogEntry, SandboxSettings } from './engine.ts';

/** What exists on the machine while a sandbox has a VM. */
export interface Run {
  slot: Slot;
  vm: VmRecord;
}

export interface SandboxRow {
  id: string;
  templateId: string;
  buildId: string;
  phase: SandboxPhase;
  startedAt: number;
  endAt: number;
  settings: SandboxSettings;
  /** Access token of aenvd for secure sandboxes. */
  token?: string;
  run?: Run;
  /** Disk layers over the disk of the template, bottom first; the last one takes the guest's writes. */
  layers: string[];
  /** The sandbox that it was forked from. */
  parentId?: string;
  /** The build that it was started from; a rollback changes `buildId`, not this. */
  originId: string;
}

/** The layer that takes the guest's writes. */
export function topOf({ layers }: Pick<SandboxRow, 'layers'>): string {
  const top = layers.at(-1);
  if (top === undefined) throw new AenvError('internal', 'a sandbox without a disk');
  return top;
}

export interface EndedSandbox {
  id: string;
  at: number;
  cause: EndCause;
  /** The sandbox or build that it came from. */
  parentId?: string;
}

/** How many ends are remembered. */
const ENDED_KEPT = 10_000;
/** How many log entries a sandbox may have; older ones go. */
const LOGS_KEPT = 1_000;

interface RawRow {
  id: string;
  template_id: string;
  build_id: string;
  phase: SandboxPhase;
  started_at: number;
  end_at: number;
  settings_json: string;
  token: string | null;
  run_json: string | null;
  layers_json: string;
  parent_id: string | null;
  origin_id: string;
}

function fromRaw(raw: RawRow): SandboxRow {
  return {
    id: raw.id,
    templateId: raw.template_id,
    buildId: raw.build_id,
    phase: raw.phase,
    startedAt: raw.started_at,
    endAt: raw.end_at,
    settings: JSON.parse(raw.settings_json) as SandboxSettings,
    ...(raw.token === null ? {} : { token: raw.token }),
    ...(raw.run_json === null ? {} : { run: JSON.parse(raw.run_json) as Run }),
    layers: JSON.parse(raw.layers_json) as string[],
    ...(raw.parent_id === null ? {} : { parentId: raw.parent_id }),
    originId: raw.origin_id,
  };
}

interface RawEnded {
  sandbox_id: string;
  at: number;
  cause: EndCause;
  parent_id: string | null;
}

function fromRawEnded({ sandbox_id: id, at, cause, parent_id }: RawEnded): EndedSandbox {
  return { id, at, cause, ...(parent_id === null ? {} : { parentId: parent_id }) };
}

export class SandboxTable {
  readonly #database: DatabaseSync;
  readonly #put: StatementSync;
  readonly #addLog: StatementSync;
  readonly #trimLogs: StatementSync;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#put = database.prepare(`
      INSERT INTO sandboxes (id, template_id, build_id, phase, started_at, end_at, settings_json, token, run_json,
        layers_json, parent_id, origin_id)
      VALUES (:id, :template, :build, :phase, :started, :end, :settings, :token, :run, :layers, :parent, :origin)
      ON CONFLICT (id) DO UPDATE SET build_id = excluded.build_id, layers_json = excluded.layers_json, phase = excluded.phase, started_at = excluded.started_at, end_at = excluded.end_at,
        settings_json = excluded.settings_json, run_json = excluded.run_json`);
    this.#addLog = database.prepare('INSERT INTO sandbox_logs (sandbox_id, entry_json) VALUES (?, ?)');
    this.#trimLogs = database.prepare(
      `DELETE FROM sandbox_logs WHERE sandbox_id = ?1
       AND seq <= (SELECT seq FROM sandbox_logs WHERE sandbox_id = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ${LOGS_KEPT})`,
    );
  }

  all(): SandboxRow[] {
    return (this.#database.prepare('SELECT * FROM sandboxes').all() as unknown as RawRow[]).map(fromRaw);
  }

  put(row: SandboxRow): void {
    this.#put.run({
      id: row.id,
      template: row.templateId,
      build: row.buildId,
      phase: row.phase,
      started: row.startedAt,
      end: row.endAt,
      settings: JSON.stringify(row.settings),
      token: row.token ?? null,
      run: row.run ? JSON.stringify(row.run) : null,
      layers: JSON.stringify(row.layers),
      parent: row.parentId ?? null,
      origin: row.originId,
    });
  }

  /** Removes the row and its logs, and remembers when and why. */
  end(id: string, at: number, cause: EndCause): void {
    transaction(this.#database, () => {
      this.#database
        .prepare(
          `INSERT OR REPLACE INTO ended (sandbox_id, at, cause, parent_id)
           VALUES (?1, ?2, ?3, (SELECT coalesce(parent_id, origin_id) FROM sandboxes WHERE id = ?1))`,
        )
        .run(id, at, cause);
      this.#database.prepare('DELETE FROM sandboxes WHERE id = ?').run(id);
      this.#database.prepare('DELETE FROM sandbox_logs WHERE sandbox_id = ?').run(id);
      this.#database.prepare('DELETE FROM layers WHERE holder = ?').run(id);
      this.#database.prepare(`DELETE FROM ended WHERE seq <= (SELECT max(seq) FROM ended) - ${ENDED_KEPT}`).run();
    });
  }

  ended(id: string): EndedSandbox | undefined {
    const raw = this.#database.prepare('SELECT * FROM ended WHERE sandbox_id = ?').get(id);
    return raw && fromRawEnded(raw as unknown as RawEnded);
  }

  allEnded(): EndedSandbox[] {
    return (this.#database.prepare('SELECT * FROM ended').all() as unknown as RawEnded[]).map(fromRawEnded);
  }

  log(id: string, entry: LogEntry): void {
    this.#addLog.run(id, JSON.stringify(entry));
    this.#trimLogs.run(id);
  }

  logs(id: string): LogEntry[] {
    const rows = this.#database
      .prepare('SELECT entry_json FROM sandbox_logs WHERE sandbox_id = ? ORDER BY seq')
      .all(id);
    return rows.map((row) => JSON.parse(row.entry_json as string) as LogEntry);
  }
}
