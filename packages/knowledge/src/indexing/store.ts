// The index: one SQLite file. All its content is derived from the added files, so it may be deleted and rebuilt.
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { KnowledgeError, messageOf } from '../errors.ts'

/** Incremented when terms or tables change: documents indexed by an older version are indexed again. */
export const INDEX_VERSION = 1

const schema = `
  CREATE TABLE IF NOT EXISTS roots (path TEXT PRIMARY KEY) STRICT;

  CREATE TABLE IF NOT EXISTS documents (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,       -- what citations call it: the path below its root
    path TEXT NOT NULL UNIQUE,
    root TEXT NOT NULL,
    title TEXT,
    digest TEXT NOT NULL,            -- of the bytes
    recipe TEXT NOT NULL,            -- how it was cut and analysed
    bytes INTEGER NOT NULL,
    modified_ms REAL NOT NULL,
    indexed_ms REAL NOT NULL,
    passages INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS documents_by_root ON documents (root);

  CREATE TABLE IF NOT EXISTS passages (
    id INTEGER PRIMARY KEY,
    document INTEGER NOT NULL REFERENCES documents (id),
    key TEXT NOT NULL,
    headings TEXT NOT NULL,          -- a JSON array
    text TEXT NOT NULL,
    start INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    page INTEGER,
    content BLOB NOT NULL,           -- digest of what is embedded
    UNIQUE (document, key)
  ) STRICT;
  CREATE INDEX IF NOT EXISTS passages_by_content ON passages (content);

  -- The terms, made by analyser.ts: FTS5 only splits them at spaces, stems them and folds accents.
  CREATE VIRTUAL TABLE IF NOT EXISTS terms USING fts5 (
    headings, body, content='', contentless_delete=1,
    tokenize="porter unicode61 remove_diacritics 2 categories 'L* M* N* P* S* Co'"
  );

  -- Kept by content, so that a renamed or moved text is not embedded again.
  CREATE TABLE IF NOT EXISTS vectors (
    embedder TEXT NOT NULL,
    content BLOB NOT NULL,
    vector BLOB NOT NULL,
    UNIQUE (embedder, content)       -- no key of the table itself: rows that long would each take a page of their own
  ) STRICT;

  CREATE TABLE IF NOT EXISTS problems (
    path TEXT PRIMARY KEY,
    root TEXT NOT NULL,
    code TEXT NOT NULL,
    message TEXT NOT NULL
  ) STRICT;
`

/** Identifies the file as an index: "OxKn". */
const APPLICATION_ID = 0x4f784b6e

/**
 * Opens the index, and creates it when it is missing. A file that is not an index is not changed.
 *
 * @throws KnowledgeError `index_unusable`
 */
export function openStore(path: string): DatabaseSync {
  let database: DatabaseSync | undefined
  try {
    mkdirSync(dirname(path), { recursive: true })
    database = new DatabaseSync(path, { allowExtension: true, timeout: 30_000 })
    const version = versionOf(database, path)
    database.exec(
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -16000',
    )
    if (version < INDEX_VERSION)
      transaction(database, () =>
        database!.exec(`${schema} PRAGMA user_version = ${INDEX_VERSION}; PRAGMA application_id = ${APPLICATION_ID}`),
      )
    return database
  } catch (error) {
    database?.close()
    throw indexError(path, error)
  }
}

/** 0 for a file without tables, which becomes an index. Only reads. */
function versionOf(database: DatabaseSync, path: string): number {
  const one = (sql: string): number => Object.values(database.prepare(sql).get()!)[0] as number
  const application = one('PRAGMA application_id')
  const version = one('PRAGMA user_version')
  const isEmpty = application === 0 && version === 0 && one('SELECT count(*) FROM sqlite_schema') === 0
  if (!isEmpty && application !== APPLICATION_ID)
    throw new KnowledgeError(
      'index_unusable',
      `${path} is a database of another program. Use another file for the index.`,
    )
  if (version > INDEX_VERSION)
    throw new KnowledgeError(
      'index_unusable',
      `The index ${path} was made by a newer version (${version}). Update Oxbow, or use another file.`,
    )
  return version
}

/** What to do, by SQLite's primary result codes. */
const advice: Readonly<Record<number, string>> = {
  5: 'Another process is writing to it. Try again.',
  6: 'Another process is writing to it. Try again.',
  8: 'Make it writable.',
  11: 'It is damaged. Delete it and add the documents again.',
  13: 'Free some disk space.',
  14: 'Make sure it is a file in a writable folder.',
  26: 'It is not an index. Use another file.',
}

/** The fault of the index, and what to do. */
export function indexError(path: string, cause: unknown): KnowledgeError {
  if (cause instanceof KnowledgeError) return cause
  const code = ((cause as { errcode?: number }).errcode ?? 0) & 0xff
  const message = [`The index ${path} cannot be used: ${messageOf(cause)}.`, advice[code]].filter(Boolean).join(' ')
  return new KnowledgeError('index_unusable', message, { cause })
}

/** All or nothing; other processes wait. */
export function transaction<T>(database: DatabaseSync, work: () => T): T {
  database.exec('BEGIN IMMEDIATE')
  try {
    const result = work()
    database.exec('COMMIT')
    return result
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}
