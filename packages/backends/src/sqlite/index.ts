// The default back end: one file, no server.
import { resolve } from 'node:path'
import type { Backend } from '@oxbow/core'
import { closedError } from '../keys.ts'
import { displacedError, storageError } from './errors.ts'
import { openFile } from './file.ts'
import { sqliteFiles } from './files.ts'
import { sqliteJournal } from './journal.ts'
import { placeOf } from './place.ts'
import { sqliteWorkers } from './workers.ts'
import { startWriter } from './writer/writer.ts'

export interface SqliteOptions {
  /** The database file. It and its directory are made if missing, readable by their owner only. */
  readonly path: string
}

/**
 * A back end in one SQLite file. Several processes of one machine may share it.
 *
 * Throws an OxbowError when the file cannot be trusted or used: `journal_corrupt`, `storage_newer` (written by a newer
 * Oxbow), `storage_foreign` (another program's database), `storage_error`. Writes reject with `storage_displaced` once the
 * file or its log was deleted or replaced.
 *
 * @example const backend = sqlite({ path: '.oxbow/oxbow.db' })
 */
export function sqlite(options: SqliteOptions): Backend {
  const path = resolve(options.path)
  const name = `sqlite ${options.path}`
  const db = openFile(path)
  const place = placeOf(path)
  const writer = startWriter(path, place)
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
        if (placeOf(path) !== place) throw displacedError(path)
        probe.get()
      })
      await writer.write(['probe'])
    },
    close() {
      closing ??= (async () => {
        workers.close()
        // The writer's connection must be the last and empty the log into the file, so it must have begun to use it.
        await writer.write(['probe']).catch(() => {})
        db.close()
        await writer.close()
      })()
      return closing
    },
  }
}
