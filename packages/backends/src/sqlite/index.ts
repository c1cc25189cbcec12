// The default back end: one file, no server.
import { resolve } from 'node:path'
import { type Backend, OxbowError } from '@oxbow/core'
import { closedError } from '../keys.ts'
import { storageError } from './errors.ts'
import { fileIdentity, openFile } from './file.ts'
import { sqliteFiles } from './files.ts'
import { sqliteJournal } from './journal.ts'
import { sqliteWorkers } from './workers.ts'
import { startWriter } from './writer.ts'

export interface SqliteOptions {
  /** The database file. It and its directory are made if missing, readable by their owner only. */
  readonly path: string
}

/**
 * A back end in one SQLite file. Several processes of one machine may share it.
 *
 * Throws an OxbowError when the file cannot be trusted or used: `journal_corrupt`, `storage_newer` (written by a newer
 * Oxbow), `storage_foreign` (another program's database), `storage_error`.
 *
 * @example const backend = sqlite({ path: '.oxbow/oxbow.db' })
 */
export function sqlite(options: SqliteOptions): Backend {
  const path = resolve(options.path)
  const name = `sqlite ${options.path}`
  const db = openFile(path)
  const writer = startWriter(path)
  const identity = fileIdentity(path)
  let closing: Promise<void> | undefined
  /** Runs a read; what SQLite throws becomes an OxbowError. */
  const guard = <T>(read: () => T): T => {
    if (closing !== undefined) throw closedError(name)
    try {
      return read()
    } catch (error) {
      throw storageError(path, error)
    }
  }
  /** A file that was deleted under us still takes appends, and they go nowhere. */
  const assertInPlace = () => {
    if (fileIdentity(path) === identity) return
    throw new OxbowError('storage_error', `${path} was deleted or replaced while in use. Restore it and restart.`)
  }
  const context = { db, writer, path, guard }
  const workers = sqliteWorkers(context)
  const probe = db.prepare('SELECT count(*) FROM (SELECT 1 FROM sessions LIMIT 1)')
  return {
    name,
    journal: sqliteJournal(context),
    files: sqliteFiles(context),
    workers,
    async check() {
      guard(() => {
        assertInPlace()
        probe.get()
      })
      await writer.write(['probe'])
    },
    close() {
      closing ??= (async () => {
        await workers.releaseAll()
        // First, so that the writer's connection is the last and empties the log into the file.
        db.close()
        await writer.close()
      })()
      return closing
    },
  }
}
