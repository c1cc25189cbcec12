// Everything in one PostgreSQL database, shared by any number of replicas.
import type { Backend } from '@oxbow/core'
import { postgresBus } from './bus.ts'
import { openDatabase } from './database.ts'
import { postgresFiles } from './files.ts'
import { postgresJournal } from './journal.ts'
import { postgresLocks } from './locks.ts'
import { checkOptions, type PostgresOptions } from './options.ts'
import { postgresQueue } from './queue.ts'
import { verifyDatabase } from './verify.ts'
import { postgresWorkers } from './workers.ts'

export type { PostgresOptions } from './options.ts'

/**
 * A back end in one PostgreSQL database, version 13 or newer. It needs the packages `pg` and, for the queue,
 * `graphile-worker`. Tables are made at the first use, in a schema of their own. A pooler in transaction mode may stand
 * before the database for everything but notifications: without them other replicas are noticed late.
 *
 * @throws OxbowError `invalid_option`. Operations reject with `package_missing`, `storage_busy` (cannot be reached, or
 * too many writers; retryable), `storage_error`, `storage_full`, `storage_newer`, `storage_readonly`, `journal_corrupt`.
 * @example const backend = postgres({ url: 'postgres://oxbow@localhost/oxbow' })
 */
export function postgres(options: PostgresOptions): Backend {
  const checked = checkOptions(options)
  const database = openDatabase(checked)
  const bus = postgresBus(database, checked.url)
  const workers = postgresWorkers(database, checked.leaseMs)
  const journal = postgresJournal(database, bus)
  const queue = postgresQueue(database)
  let closing: Promise<void> | undefined
  async function close(): Promise<void> {
    database.end()
    workers.close()
    await queue.close()
    await journal.close()
    await bus.close()
    await database.close()
  }
  return {
    name: checked.name,
    journal,
    files: postgresFiles(database),
    workers,
    queue,
    bus,
    locks: postgresLocks(database),
    async check() {
      database.assertOpen()
      // A write, because a standby answers every read.
      await database.query(`UPDATE ${checked.schema}.meta SET version = version WHERE false`)
      await bus.listening()
    },
    async verify(onProgress = () => {}) {
      database.assertOpen()
      return verifyDatabase(database, onProgress)
    },
    close: () => (closing ??= close()),
  }
}
