// Opens the database file, or creates it, and refuses other files.
import { randomUUID } from 'node:crypto'
import { closeSync, existsSync, linkSync, mkdirSync, openSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { OxbowError } from '@oxbow/core'
import { corrupt, incomplete, storageError } from '../errors.ts'
import { applicationId, connect, pageBytes, schemaVersion, tables, upgrades } from './schema.ts'

/**
 * Opens `path` for reading. It and its directory are created if missing, unless its mark shows that there was one.
 * Throws an OxbowError on any doubt.
 */
export function openFile(path: string, hasMark: boolean): DatabaseSync {
  let db: DatabaseSync | undefined
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    // In this order: another process that creates the file does so before it can have a log.
    const hasLog = existsSync(`${path}-wal`)
    if (!existsSync(path)) {
      if (hasLog) throw corrupt(path, 'the file is missing, but its log (-wal) exists')
      if (hasMark) throw incomplete(path, undefined)
      create(path)
    }
    if (statSync(path).isDirectory())
      throw new OxbowError(
        'storage_error',
        `${path} is a directory. Give the path of a file, such as ${path}/oxbow.db.`,
      )
    if (statSync(path).size === 0) throw corrupt(path, 'the file is empty; Oxbow never leaves an empty file')
    db = connect(path)
    assertOurs(db, path)
    upgrade(db)
    db.exec('PRAGMA query_only = ON')
    return db
  } catch (error) {
    db?.close()
    throw storageError(path, error)
  }
}

/**
 * The file appears whole or not at all: a crash on the way leaves only the temporary one. So an empty file is always a
 * damaged one, and two processes may create at the same time.
 */
function create(path: string): void {
  const temporary = `${path}.${randomUUID()}`
  try {
    closeSync(openSync(temporary, 'wx', 0o600))
    const db = connect(temporary)
    try {
      db.exec(`PRAGMA page_size = ${pageBytes};
        PRAGMA journal_mode = WAL;
        BEGIN;
        PRAGMA application_id = ${applicationId};
        PRAGMA user_version = ${schemaVersion};
        ${tables}
        COMMIT`)
    } finally {
      db.close()
    }
    linkSync(temporary, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(temporary, { force: true })
  }
}

function assertOurs(db: DatabaseSync, path: string): void {
  const application = db.prepare('PRAGMA application_id').get()?.application_id
  if (application !== applicationId) {
    throw new OxbowError('storage_foreign', `${path} is a database of another program. Use another path for Oxbow.`)
  }
  const version = Number(db.prepare('PRAGMA user_version').get()?.user_version)
  if (version > schemaVersion) {
    throw new OxbowError(
      'storage_newer',
      `${path} was written by a newer Oxbow (schema ${version}; this one supports ${schemaVersion}). Install that version again, or use another file.`,
    )
  }
}

/** Upgrades an older file, step by step; another process may be doing the same. */
function upgrade(db: DatabaseSync): void {
  const versionOf = (): number => Number(db.prepare('PRAGMA user_version').get()?.user_version)
  while (versionOf() < schemaVersion) {
    db.exec('BEGIN IMMEDIATE')
    const version = versionOf()
    if (version < schemaVersion) db.exec(`${upgrades[version] ?? ''}; PRAGMA user_version = ${version + 1}`)
    db.exec('COMMIT')
  }
}
