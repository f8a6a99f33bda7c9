/** Opens the state database and brings its schema up to date. The only place with DDL. */
import { DatabaseSync } from 'node:sqlite';
import { AenvError } from '@aenv/std';

/** Each entry runs once, in order; `user_version` counts how many have run. Never edit one that has been released. */
const MIGRATIONS = [
  `
  CREATE TABLE templates (
    id TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    spawn_count INTEGER NOT NULL DEFAULT 0,
    last_spawned_at INTEGER
  ) STRICT;

  CREATE TABLE names (
    name TEXT PRIMARY KEY,
    template_id TEXT NOT NULL REFERENCES templates (id) ON DELETE CASCADE
  ) STRICT;

  CREATE TABLE builds (
    id TEXT PRIMARY KEY,
    template_id TEXT NOT NULL REFERENCES templates (id) ON DELETE CASCADE,
    status TEXT NOT NULL CHECK (status IN ('waiting', 'building', 'ready', 'error')),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    finished_at INTEGER,
    cpu_count INTEGER NOT NULL,
    memory_mb INTEGER NOT NULL,
    disk_mb INTEGER,
    -- The build whose disk (for a snapshot also: whose memory) this one's stands on.
    base_build_id TEXT REFERENCES builds (id),
    -- Set for a snapshot.
    source_sandbox_id TEXT,
    -- Of a snapshot: 1 when it has no memory.
    disk_only INTEGER NOT NULL DEFAULT 0,
    -- Tags that name the build once it is ready.
    tags_json TEXT NOT NULL,
    guest_json TEXT,
    reason_message TEXT,
    reason_step TEXT
  ) STRICT;
  CREATE INDEX builds_by_template ON builds (template_id);

  CREATE TABLE tags (
    template_id TEXT NOT NULL REFERENCES templates (id) ON DELETE CASCADE,
    tag TEXT NOT NULL,
    build_id TEXT NOT NULL REFERENCES builds (id) ON DELETE CASCADE,
    PRIMARY KEY (template_id, tag)
  ) STRICT;

  CREATE TABLE build_logs (
    seq INTEGER PRIMARY KEY,
    build_id TEXT NOT NULL REFERENCES builds (id) ON DELETE CASCADE,
    entry_json TEXT NOT NULL
  ) STRICT;
  CREATE INDEX build_logs_by_build ON build_logs (build_id);

  CREATE TABLE sandboxes (
    id TEXT PRIMARY KEY,
    template_id TEXT NOT NULL REFERENCES templates (id),
    build_id TEXT NOT NULL REFERENCES builds (id),
    phase TEXT NOT NULL CHECK (phase IN
      ('starting', 'running', 'pausing', 'paused', 'resuming', 'capturing', 'rolling_back', 'killing')),
    started_at INTEGER NOT NULL,
    end_at INTEGER NOT NULL,
    settings_json TEXT NOT NULL,
    token TEXT,
    run_json TEXT,
    -- Disk layers over the disk of the template, bottom first; the last one takes the guest's writes.
    layers_json TEXT NOT NULL,
    -- The sandbox that it was forked from, and the build that it was started from.
    parent_id TEXT,
    origin_id TEXT NOT NULL
  ) STRICT;
  CREATE INDEX sandboxes_by_build ON sandboxes (build_id);

  -- Who needs which disk layer: ids of sandboxes and builds, and of operations in progress.
  CREATE TABLE layers (
    layer TEXT NOT NULL,
    holder TEXT NOT NULL,
    PRIMARY KEY (layer, holder)
  ) STRICT;
  CREATE INDEX layers_by_holder ON layers (holder);

  CREATE TABLE sandbox_logs (
    seq INTEGER PRIMARY KEY,
    sandbox_id TEXT NOT NULL,
    entry_json TEXT NOT NULL
  ) STRICT;
  CREATE INDEX sandbox_logs_by_sandbox ON sandbox_logs (sandbox_id);

  -- What is done to sandboxes and builds, while it is done and for a while afterwards.
  CREATE TABLE operations (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    sandbox_id TEXT,
    build_id TEXT,
    generation INTEGER NOT NULL,
    phase TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'succeeded', 'failed', 'interrupted')),
    started_at INTEGER NOT NULL,
    deadline_at INTEGER NOT NULL,
    ended_at INTEGER,
    error_json TEXT
  ) STRICT;
  CREATE INDEX operations_by_sandbox ON operations (sandbox_id);

  -- Which request made which sandbox.
  CREATE TABLE idempotency_keys (
    key TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    sandbox_id TEXT NOT NULL,
    at INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE ended (
    seq INTEGER PRIMARY KEY,
    sandbox_id TEXT NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    cause TEXT NOT NULL,
    -- The sandbox or build that it came from.
    parent_id TEXT
  ) STRICT;
  `,
];

/**
 * Opens (or creates) the database at `path`; `:memory:` for tests. WAL with synchronous=NORMAL: a crash of the process
 * loses nothing, a power cut may lose the last moments but never damages the file.
 */
export function openDatabase(path: string): DatabaseSync {
  const database = new DatabaseSync(path);
  database.exec(
    'PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA busy_timeout = 5000',
  );
  const { user_version: version } = database.prepare('PRAGMA user_version').get() as { user_version: number };
  if (version > MIGRATIONS.length) {
    database.close();
    throw new AenvError('config_invalid', `${path} was written by a newer version of the server (schema ${version})`, {
      remedy: 'Start that version, or use another AENV_HOME.',
    });
  }
  for (const [index, migration] of MIGRATIONS.entries()) {
    if (index < version) continue;
    database.exec(`BEGIN; ${migration}; PRAGMA user_version = ${index + 1}; COMMIT`);
  }
  return database;
}

/** Runs `work` in a transaction: all of it or nothing. */
export function transaction<T>(database: DatabaseSync, work: () => T): T {
  database.exec('BEGIN IMMEDIATE');
  try {
    const result = work();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    database.exec('ROLLBACK');
    throw error;
  }
}
