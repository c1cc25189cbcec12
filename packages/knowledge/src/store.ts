// The index: one SQLite file. Everything in it follows from the files that were added; it may be deleted and made again.
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { KnowledgeError, messageOf } from './errors.ts'

/** Counts up when terms or tables change: documents that were indexed by an older one are indexed again. */
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

/** Opens the file, and makes it when it is missing. Throws a KnowledgeError `index_unusable`. */
export function openStore(path: string): DatabaseSync {
  let database: DatabaseSync | undefined
  try {
    mkdirSync(dirname(path), { recursive: true })
    database = new DatabaseSync(path, { allowExtension: true, timeout: 30_000 })
    database.exec(
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -16000',
    )
    const { user_version: version } = database.prepare('PRAGMA user_version').get() as { user_version: number }
    if (version > INDEX_VERSION) throw new Error(`it was made by a newer version (${version})`)
    if (version < INDEX_VERSION)
      transaction(database, () => database!.exec(`${schema} PRAGMA user_version = ${INDEX_VERSION}`))
    return database
  } catch (error) {
    database?.close()
    const message = `The index ${path} cannot be used: ${messageOf(error)}. Delete it and add the documents again.`
    throw new KnowledgeError('index_unusable', message, { cause: error })
  }
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
