// The file: its tables, its version, and the setup of a connection. Loaded by the writer thread too, so it only imports
// from Node.
import type { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'

/** Increment it with every change of the tables, together with a step that upgrades older files. */
export const schemaVersion = 3

/** "OxbW": distinguishes Oxbow's files from other programs' databases. */
export const applicationId = 0x4f786257

/**
 * Bytes of a page in new files. A commit writes every page that it touched, and an append touches half a dozen for some
 * hundred bytes, so small pages make short logs. Older files keep the size that they were created with.
 */
export const pageBytes = 512

// Rows lie in the order of arrival, and an index finds those of a session. Clustered by session, each append would
// dirty the pages of its session alone: measured, 3 to 5 times the pages written, for reads of 500 events in 0.5 ms,
// not 1 ms.
//
// `sum` is the checksum of the row, chained to the event before it in the session (sums.ts); NULL in rows that were
// stored before schema 3. The audit record of an event lies in its row, so that the same chain covers it; rows without
// one have nothing in `at`, `user`, `tool` and `status`, which are there to be searched.
const events = `
CREATE TABLE events (
  id      INTEGER PRIMARY KEY,
  session INTEGER NOT NULL REFERENCES sessions (id),
  seq     INTEGER NOT NULL,
  sum     INTEGER,
  at      INTEGER,
  user    TEXT,
  tool    TEXT,
  status  TEXT,
  audit   TEXT,
  body    TEXT NOT NULL,
  UNIQUE (session, seq)
) STRICT;

-- In the order of arrival, so that only its last page changes; with all that a query of the audit log filters by.
CREATE INDEX events_audited ON events (id, at, session, user, tool, status) WHERE tool IS NOT NULL;
`

const sessionIndexes = `
CREATE INDEX sessions_open ON sessions (status, wake_at) WHERE status <> 'idle' OR wake_at IS NOT NULL;
CREATE INDEX sessions_by_user ON sessions (tenant, user, updated_hour);
CREATE INDEX sessions_by_hour ON sessions (updated_hour);
`

/** What each version upgraded, by the version that the file had. */
export const upgrades: Readonly<Record<number, string>> = {
  1: `
ALTER TABLE sessions ADD COLUMN wake_at INTEGER;
CREATE TABLE audit (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  at      INTEGER NOT NULL,
  tenant  TEXT NOT NULL,
  user    TEXT NOT NULL,
  session TEXT NOT NULL,
  tool    TEXT NOT NULL,
  status  TEXT,
  body    TEXT NOT NULL
) STRICT;`,
  2: `
DROP INDEX IF EXISTS sessions_by_wake;
DROP INDEX IF EXISTS sessions_by_update;
DROP INDEX IF EXISTS sessions_by_tenant;
DROP INDEX IF EXISTS sessions_by_status;
DROP INDEX IF EXISTS sessions_by_user;
ALTER TABLE sessions ADD COLUMN updated_hour INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET updated_hour = updated_at / 3600000;
ALTER TABLE sessions ADD COLUMN head_sum INTEGER;
ALTER TABLE sessions ADD COLUMN sum INTEGER;
${sessionIndexes}

ALTER TABLE events RENAME TO events_2;
${events}
INSERT INTO events (id, session, seq, body) SELECT rowid, session, seq, body FROM events_2;
UPDATE events SET at = a.at, user = a.user, tool = a.tool, status = a.status, audit = a.body
FROM (
  SELECT sessions.id AS session_id, json_extract(audit.body, '$.seq') AS seq,
    audit.at, audit.user, audit.tool, audit.status, audit.body
  FROM audit JOIN sessions ON sessions.tenant = audit.tenant
    AND sessions.user = json_extract(audit.body, '$.key.user') AND sessions.session = audit.session
) AS a
WHERE events.session = a.session_id AND events.seq = a.seq;
DROP TABLE events_2;
DROP TABLE audit;

ALTER TABLE files ADD COLUMN sum INTEGER;
ALTER TABLE snapshots ADD COLUMN sum INTEGER;
ALTER TABLE workers ADD COLUMN abandoned INTEGER NOT NULL DEFAULT 0;
`,
}

export const tables = `
-- Rows are never deleted, so an id is never given twice. A negative \`updated_hour\` marks those that are no sessions
-- (erased.ts).
-- Written when the status or a title changes, and else once a minute: \`head\` and \`updated_at\` are those of that moment.
-- \`head_sum\` is the checksum of the event at \`head\`, \`sum\` that of this row.
CREATE TABLE sessions (
  id           INTEGER PRIMARY KEY,
  tenant       TEXT NOT NULL,
  user         TEXT NOT NULL,
  session      TEXT NOT NULL,
  head         INTEGER NOT NULL,
  status       TEXT NOT NULL,
  agent        TEXT NOT NULL,
  title        TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL,
  wake_at      INTEGER,
  updated_hour INTEGER NOT NULL,
  head_sum     INTEGER,
  sum          INTEGER,
  UNIQUE (tenant, user, session)
) STRICT;
${sessionIndexes}
${events}
CREATE TABLE snapshots (
  session INTEGER PRIMARY KEY REFERENCES sessions (id),
  seq     INTEGER NOT NULL,
  version INTEGER NOT NULL,
  data    TEXT NOT NULL,
  sum     INTEGER
) STRICT;

-- A deleted file keeps its row without data, so that its next version is a new one.
CREATE TABLE files (
  tenant  TEXT NOT NULL,
  user    TEXT NOT NULL,
  session TEXT NOT NULL,
  path    TEXT NOT NULL,
  version INTEGER NOT NULL,
  data    BLOB,
  sum     INTEGER,
  UNIQUE (tenant, user, session, path)
) STRICT;

-- \`abandoned\`: its back end was closed before it was released; it is alive as long as its process.
CREATE TABLE workers (
  worker    TEXT PRIMARY KEY,
  host      TEXT NOT NULL,
  pid       INTEGER NOT NULL,
  started   TEXT NOT NULL,
  heartbeat INTEGER NOT NULL,
  abandoned INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
`

/** How long a write waits for another process that writes. */
export const busyMs = 5_000

/** A checkpoint copies the log into the file once it has grown by this much. */
const checkpointBytes = 8 * 1024 * 1024

/** The log is larger than this only while a reader prevents a restart of the log. */
export const logLimitBytes = 32 * 1024 * 1024

/** Opens a connection to an existing file, with the settings that every connection needs. */
export function connect(path: string): DatabaseSync {
  const url = pathToFileURL(path)
  // SQLite would create an empty database in place of one that was just deleted.
  url.searchParams.set('mode', 'rw')
  // Imported here, because an older Node has no such module: the check of its version comes first.
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  const db = new DatabaseSync(url, { timeout: busyMs, enableForeignKeyConstraints: true })
  // A page that is written ten times before a checkpoint goes to the file once, so checkpoints are few.
  db.exec(`PRAGMA synchronous = FULL; PRAGMA cache_size = -16000; PRAGMA journal_size_limit = ${logLimitBytes}`)
  const pageSize = Number(db.prepare('PRAGMA page_size').get()?.page_size)
  db.exec(`PRAGMA wal_autocheckpoint = ${Math.ceil(checkpointBytes / pageSize)}`)
  return db
}
