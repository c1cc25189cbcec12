// The tables, their version, and how they are made.
import { OxbowError } from '@oxbow/core'
import type { Pool } from 'pg'

/** Raise it with every change of the tables, together with a step in `UPGRADES`. */
const VERSION = 1
/** The oldest version that can still work on tables of `VERSION`: during a rolling upgrade both are in use. */
const OLDEST_READER = 1

const PARTITIONS = 16

/** Names are compared byte by byte, as every other back end does. */
const NAME = 'text COLLATE "C" NOT NULL'

// `head` changes with every append, so it must not be in an index: then PostgreSQL updates the row in place (HOT).
// `updated_at` and `wake_at` are in indexes and may lag behind for a minute, as the port allows.
const tables = (schema: string): string => `
CREATE TABLE ${schema}.sessions (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant     ${NAME},
  usr        ${NAME},
  session    ${NAME},
  head       bigint NOT NULL,
  status     text NOT NULL,
  agent      text NOT NULL,
  title      text NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  wake_at    bigint,
  UNIQUE (tenant, usr, session)
) WITH (fillfactor = 80);
CREATE INDEX sessions_by_user ON ${schema}.sessions (tenant, usr, updated_at);
CREATE INDEX sessions_by_time ON ${schema}.sessions (updated_at);
CREATE INDEX sessions_open ON ${schema}.sessions (updated_at) WHERE status <> 'idle';
CREATE INDEX sessions_due ON ${schema}.sessions (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE ${schema}.events (
  session bigint NOT NULL,
  seq     bigint NOT NULL,
  sum     bigint NOT NULL,
  body    text NOT NULL,
  PRIMARY KEY (session, seq)
) PARTITION BY HASH (session);
${Array.from(
  { length: PARTITIONS },
  (_, n) => `CREATE TABLE ${schema}.events_${n} PARTITION OF ${schema}.events
  FOR VALUES WITH (MODULUS ${PARTITIONS}, REMAINDER ${n});`,
).join('\n')}

-- \`xact\`: the transaction that stored the record. Ids become visible out of order; see audit.ts.
CREATE TABLE ${schema}.audit (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  xact    xid8 NOT NULL DEFAULT pg_current_xact_id(),
  session bigint NOT NULL,
  seq     bigint NOT NULL,
  at      bigint NOT NULL,
  tenant  ${NAME},
  usr     ${NAME},
  name    ${NAME},
  tool    ${NAME},
  status  text,
  sum     bigint NOT NULL,
  body    text NOT NULL
);
CREATE INDEX audit_by_session ON ${schema}.audit (session, id);
CREATE INDEX audit_by_user ON ${schema}.audit (tenant, usr, id);

CREATE TABLE ${schema}.snapshots (
  session bigint PRIMARY KEY,
  seq     bigint NOT NULL,
  version bigint NOT NULL,
  sum     bigint NOT NULL,
  data    text NOT NULL
);

-- A deleted file keeps its row without data, so that its next version is a new one.
CREATE TABLE ${schema}.files (
  tenant  ${NAME},
  usr     ${NAME},
  session ${NAME},
  path    ${NAME},
  version bigint NOT NULL,
  sum     bigint NOT NULL,
  data    bytea,
  PRIMARY KEY (tenant, usr, session, path)
);

CREATE TABLE ${schema}.workers (
  worker    ${NAME} PRIMARY KEY,
  host      text NOT NULL,
  pid       integer NOT NULL,
  announced text NOT NULL,
  seen_at   timestamptz NOT NULL,
  until     timestamptz NOT NULL
);

-- Rows stay, so that tokens of a name only ever grow.
CREATE TABLE ${schema}.locks (
  name  ${NAME} PRIMARY KEY,
  token bigint NOT NULL,
  until timestamptz NOT NULL
);

-- Messages that are too long for a notification, for as long as it takes to fetch them.
CREATE UNLOGGED TABLE ${schema}.messages (
  id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at   timestamptz NOT NULL DEFAULT now(),
  body text NOT NULL
);
`

/** By the version that they upgrade from. */
const UPGRADES: Readonly<Record<number, (schema: string) => string>> = {}

/**
 * Makes or upgrades the tables, once, however many replicas start at the same time. When the versions match nothing is
 * written and no lock is taken.
 *
 * @throws OxbowError `storage_newer`
 */
export async function migrate(pool: Pool, schema: string, name: string): Promise<void> {
  try {
    await make(pool, schema, name)
  } catch (error) {
    // Another replica was quicker in a way that the lock did not cover, or the answer to a commit was lost.
    if (!ALREADY_THERE.has((error as { code?: string }).code ?? '')) throw error
    await make(pool, schema, name)
  }
}

/** A schema, a table, or a row of the catalogue. */
const ALREADY_THERE = new Set(['42P06', '42P07', '23505'])

async function make(pool: Pool, schema: string, name: string): Promise<void> {
  if ((await versionOf(pool, schema, name)) === VERSION) return
  const client = await pool.connect()
  let broken: Error | undefined
  try {
    await client.query('BEGIN')
    await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`oxbow ${schema}`])
    let version = await versionOf(client, schema, name)
    if (version === 0)
      await client.query(`CREATE SCHEMA IF NOT EXISTS ${schema};
        CREATE TABLE ${schema}.meta (version integer NOT NULL, oldest_reader integer NOT NULL);
        INSERT INTO ${schema}.meta VALUES (${VERSION}, ${OLDEST_READER});
        ${tables(schema)}`)
    for (; version > 0 && version < VERSION; version += 1) await client.query(UPGRADES[version]!(schema))
    await client.query(`UPDATE ${schema}.meta SET version = ${VERSION}, oldest_reader = ${OLDEST_READER}`)
    await client.query('COMMIT')
  } catch (error) {
    broken = error as Error
    throw error
  } finally {
    // A connection whose transaction failed goes away with it.
    client.release(broken)
  }
}

/** The version of the tables; 0 when there are none. A newer one that this version can work with counts as its own. */
async function versionOf(db: Pick<Pool, 'query'>, schema: string, name: string): Promise<number> {
  const { rows: found } = await db.query<{ there: boolean }>('SELECT to_regclass($1) IS NOT NULL AS there', [
    `${schema}.meta`,
  ])
  if (!found[0]!.there) return 0
  const { rows } = await db.query<{ version: number; oldest_reader: number }>(
    `SELECT version, oldest_reader FROM ${schema}.meta`,
  )
  const { version, oldest_reader } = rows[0]!
  if (version <= VERSION) return version
  if (oldest_reader <= VERSION) return VERSION
  throw new OxbowError(
    'storage_newer',
    `${name} was written by a newer Oxbow (tables of version ${version}; this one knows ${VERSION}). Install that version.`,
  )
}
