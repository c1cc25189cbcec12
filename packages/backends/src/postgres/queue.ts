// Jobs in the same database, with graphile-worker.
import { setTimeout as delay } from 'node:timers/promises'
import type { Job, Queue, QueueDepth, SessionKey } from '@oxbow/core'
import { optionalPackage } from '@oxbow/core/internal'
import { assertKey, mapKey } from '../keys.ts'
import type { Database } from './database.ts'

const TASK = 'oxbow'
const MAX_ATTEMPTS = 10
/** Jobs are announced by notifications; this finds those whose notification was lost, and those that become due. */
const POLL_MS = 1_000
const RESTART_MS = 1_000

const load = () => optionalPackage(() => import('graphile-worker'), 'The queue of postgres()', 'graphile-worker@0.18')

export function postgresQueue(database: Database): Queue & { close(): Promise<unknown> } {
  const schema = `${database.schema}_jobs`
  let migrated: Promise<void> | undefined
  const workers = new Set<{ stop(): Promise<void> }>()

  /** Makes or upgrades the tables of the queue, one replica at a time. */
  async function migrate(): Promise<void> {
    const { runMigrations, Logger } = await load()
    const pool = await database.pool()
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`oxbow ${schema}`])
      await runMigrations({ pgPool: pool, schema, logger: new Logger(() => () => {}) })
      await client.query('COMMIT')
    } finally {
      client.release()
    }
  }
  const ready = (): Promise<void> => {
    migrated ??= migrate().catch((error: unknown) => {
      migrated = undefined
      throw error
    })
    return migrated
  }

  return {
    async enqueue({ key, reason }, runAt) {
      database.assertOpen()
      assertKey(key)
      await ready()
      // `preserve_run_at` keeps the time of the job that waits, `replace` takes the new one.
      await database.query(
        `SELECT ${schema}.add_job($1, $2::json, run_at => at, max_attempts => ${MAX_ATTEMPTS}, job_key => $3,
           job_key_mode => CASE WHEN EXISTS (
             SELECT FROM ${schema}.jobs j WHERE j.key = $3 AND j.locked_at IS NULL AND j.run_at <= at
           ) THEN 'preserve_run_at' ELSE 'replace' END)
         FROM (SELECT coalesce(to_timestamp($4::float8 / 1000), now()) AS at) AS wanted`,
        [TASK, JSON.stringify({ key, reason } satisfies Job), mapKey(key), runAt ?? null],
      )
    },

    work(handle, concurrency) {
      database.assertOpen()
      const stopped = new AbortController()
      const start = async () => {
        await ready()
        const { run, Logger } = await load()
        return run({
          pgPool: await database.pool(),
          schema,
          concurrency,
          pollInterval: POLL_MS,
          noHandleSignals: true,
          // Without batches a completion that fails is an unhandled rejection, which ends the process.
          preset: { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
          logger: new Logger(() => () => {}),
          taskList: { [TASK]: (payload) => handle(jobOf(payload)) },
        })
      }
      /** A runner that cannot start, or ends by itself, is replaced: the server may have been away. */
      const running = (async () => {
        while (!stopped.signal.aborted) {
          const runner = await start().catch(() => undefined)
          const stop = () => void runner?.stop().catch(() => {})
          if (stopped.signal.aborted) stop()
          else stopped.signal.addEventListener('abort', stop, { once: true })
          await runner?.promise.catch(() => {})
          stopped.signal.removeEventListener('abort', stop)
          await delay(RESTART_MS, undefined, { signal: stopped.signal, ref: false }).catch(() => {})
        }
      })()
      const worker = {
        async stop() {
          if (!workers.delete(worker)) return
          stopped.abort()
          await running
        },
      }
      workers.add(worker)
      return worker
    },

    async depth(): Promise<QueueDepth> {
      database.assertOpen()
      await ready()
      const [row] = await database.query<{ due: number; failed: number; oldest: number | null }>(
        `SELECT count(*) FILTER (WHERE due)::int AS due, count(*) FILTER (WHERE attempts >= max_attempts AND locked_at IS NULL)::int AS failed,
           (extract(epoch FROM now() - min(run_at) FILTER (WHERE due)) * 1000)::float8 AS oldest
         FROM (SELECT *, locked_at IS NULL AND run_at <= now() AND attempts < max_attempts AS due FROM ${schema}.jobs) AS j`,
      )
      return { due: row!.due, failed: row!.failed, oldestMs: Math.max(0, row!.oldest ?? 0) }
    },

    /** Stops the workers that were left at work. */
    close: () => Promise.all([...workers].map((it) => it.stop())),
  }
}

const jobOf = (payload: unknown): Job => {
  const { key, reason } = payload as { key: SessionKey; reason: string }
  return { key, reason }
}
