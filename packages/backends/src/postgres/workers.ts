// The leases of workers, written and judged by the clock of the database alone.
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { WorkerStatus, Workers } from '@oxbow/core'
import { assertName } from '../keys.ts'
import type { Database } from './database.ts'

const BEATS_PER_LEASE = 4

export function postgresWorkers(database: Database, leaseMs: number): Workers & { close(): void } {
  const { schema } = database
  const announced = new Map<string, string>()
  let timer: NodeJS.Timeout | undefined

  const until = (parameter: string) => `clock_timestamp() + ${parameter} * interval '1 millisecond'`

  async function beat(): Promise<void> {
    await database.query(
      `UPDATE ${schema}.workers SET seen_at = clock_timestamp(), until = ${until('$2::bigint')}
       WHERE worker = ANY ($1)`,
      [[...announced.keys()], leaseMs],
    )
  }

  const stop = () => {
    clearInterval(timer)
    timer = undefined
  }

  async function status(worker: string): Promise<WorkerStatus | undefined> {
    database.assertOpen()
    const [row] = await database.query<{ alive: boolean; host: string; pid: number; silent: number }>(
      `SELECT until > clock_timestamp() AS alive, host, pid,
         greatest(0, extract(epoch FROM clock_timestamp() - seen_at) * 1000)::float8 AS silent
       FROM ${schema}.workers WHERE worker = $1`,
      [worker],
    )
    if (row === undefined) return undefined
    return { alive: row.alive, host: row.host, pid: row.pid, silentMs: announced.has(worker) ? 0 : row.silent }
  }

  return {
    async announce(worker) {
      database.assertOpen()
      assertName(worker, 'worker')
      const announcement = randomUUID()
      await database.query(
        `WITH forgotten AS (DELETE FROM ${schema}.workers WHERE until < clock_timestamp() - interval '1 day')
         INSERT INTO ${schema}.workers (worker, host, pid, announced, seen_at, until)
         VALUES ($1, $2, $3, $4, clock_timestamp(), ${until('$5::bigint')})
         ON CONFLICT (worker) DO UPDATE SET host = excluded.host, pid = excluded.pid, announced = excluded.announced,
           seen_at = excluded.seen_at, until = excluded.until`,
        [worker, hostname(), process.pid, announcement, leaseMs],
      )
      announced.set(worker, announcement)
      // A beat that fails is made good by the next; a lease that ends meanwhile costs only work that is done twice.
      timer ??= setInterval(() => void beat().catch(() => {}), leaseMs / BEATS_PER_LEASE).unref()
      return {
        async release() {
          if (announced.get(worker) !== announcement) return
          announced.delete(worker)
          if (announced.size === 0) stop()
          if (database.ended) return
          const own = [worker, announcement]
          await database.query(`DELETE FROM ${schema}.workers WHERE worker = $1 AND announced = $2`, own)
        },
      }
    },
    async alive(worker) {
      return (await status(worker))?.alive ?? false
    },
    status,
    /** Workers that were not released keep their turns until their lease ends. */
    close: stop,
  }
}
