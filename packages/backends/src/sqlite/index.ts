// The default back end: one file, no server.
import { resolve } from 'node:path'
import { type Backend, OxbowError } from '@oxbow/core'
import { closedError } from '../keys.ts'
import { localBus } from '../local/bus.ts'
import { localLocks } from '../local/locks.ts'
import { localQueue } from '../local/queue.ts'
import { displacedError, storageError } from './errors.ts'
import { openFile } from './file/file.ts'
import { readMark } from './file/mark.ts'
import { placeOf } from './file/place.ts'
import { checkStart } from './integrity/start.ts'
import { verifyStore } from './integrity/verify.ts'
import { sqliteFiles } from './reading/files.ts'
import { sqliteJournal } from './reading/journal.ts'
import { defaultLeaseMs, sqliteWorkers } from './workers/workers.ts'
import { startWriter } from './writer/writer.ts'

export interface SqliteOptions {
  /** The database file. It and its directory are created if missing, readable by their owner only. */
  readonly path: string
  /**
   * How long a worker without heartbeats keeps its turns, in milliseconds; then another process on the same store
   * claims them. Default 5,000, at least 1,000. Must be longer than anything that blocks the event loop.
   */
  readonly leaseMs?: number
}

/**
 * A back end in one SQLite file. Several processes of one machine may share it.
 *
 * Throws an OxbowError when the options are invalid (`invalid_option`) or the file cannot be trusted or used:
 * `journal_corrupt`, `storage_newer` (written by a newer Oxbow), `storage_foreign` (another program's database),
 * `storage_readonly`, `storage_error`. Damage of single sessions and missing acknowledged events do not prevent
 * opening: `check()` rejects with `journal_corrupt` or `journal_incomplete`. Writes reject with `storage_displaced`
 * once the file or its log was deleted or replaced.
 *
 * @example const backend = sqlite({ path: '.oxbow/oxbow.db' })
 */
export function sqlite(options: SqliteOptions): Backend {
  const { leaseMs } = checked(options)
  const path = resolve(options.path)
  const name = `sqlite ${options.path}`
  // Before the database: concurrent commits of other processes must not look lost.
  const mark = readMark(path)
  const db = openFile(path, mark !== undefined)
  const place = placeOf(path)
  const problem = checkStart(db, path, mark)
  const writer = startWriter(path, place)
  let closing: Promise<void> | undefined
  /** Runs a read; SQLite errors become OxbowErrors. */
  const guard = <T>(read: () => T): T => {
    if (closing !== undefined) throw closedError(name)
    try {
      return read()
    } catch (error) {
      throw storageError(path, error)
    }
  }
  const context = { db, writer, path, guard }
  const workers = sqliteWorkers(context, leaseMs)
  const probe = db.prepare('SELECT count(*) FROM (SELECT 1 FROM sessions LIMIT 1)')
  // Several processes of one host find each other's work by the sweep, and their events by looking at the file.
  const assertOpen = () => guard(() => {})
  const queue = localQueue(assertOpen)
  return {
    name,
    queue,
    bus: localBus(),
    locks: localLocks(assertOpen),
    journal: sqliteJournal(context),
    files: sqliteFiles(context),
    workers,
    async check() {
      guard(() => {
        if (placeOf(path) !== place) throw displacedError(path)
        if (problem !== undefined) throw problem
        probe.get()
      })
      await writer.write(['probe'])
    },
    async verify(onProgress = () => {}) {
      guard(() => {})
      return verifyStore(db, path, onProgress)
    },
    close() {
      closing ??= (async () => {
        queue.close()
        await workers.close()
        // The writer's connection must be the last one, which empties the log into the file, so it must already be in
        // use.
        await writer.write(['probe']).catch(() => {})
        db.close()
        await writer.close()
      })()
      return closing
    },
  }
}

const shortestLeaseMs = 1_000

function checked(options: SqliteOptions): { leaseMs: number } {
  const invalid = (what: string) => new OxbowError('invalid_option', `sqlite(): ${what}`)
  const example = "for example sqlite({ path: '.oxbow/oxbow.db' })"
  if (typeof options !== 'object' || options === null)
    throw invalid(`The options must be an object: ${JSON.stringify(options)} was given. Write ${example}.`)
  const { path, leaseMs = defaultLeaseMs, ...others } = options
  const unknown = Object.keys(others)
  if (unknown.length > 0) throw invalid(`Unknown option ${JSON.stringify(unknown[0])}. Allowed: path, leaseMs.`)
  if (typeof path !== 'string' || path === '')
    throw invalid(`path must be the path of a file: ${JSON.stringify(path)} was given. Write ${example}.`)
  if (!Number.isFinite(leaseMs) || leaseMs < shortestLeaseMs)
    throw invalid(`leaseMs must be a number of at least ${shortestLeaseMs}: ${String(leaseMs)} was given.`)
  return { leaseMs }
}
