// The connections of one open back end.
import { OxbowError } from '@oxbow/core'
import { optionalPackage } from '@oxbow/core/internal'
import type { Pool, QueryResultRow } from 'pg'
import { closedError } from '../keys.ts'
import { postgresError } from './errors.ts'
import type { CheckedOptions } from './options.ts'
import { migrate } from './schema.ts'

/** A caller is told within this time that the database cannot be reached. */
const CONNECT_MS = 5_000
/** No statement of ours takes longer while the database is well. */
const STATEMENT_MS = 30_000

export interface Database {
  readonly name: string
  readonly schema: string
  /** Runs one statement; what the driver throws becomes an OxbowError. */
  query<Row extends QueryResultRow>(sql: string, values?: readonly unknown[]): Promise<Row[]>
  /** Runs one statement and passes on what the driver throws. */
  raw<Row extends QueryResultRow>(sql: string, values?: readonly unknown[]): Promise<Row[]>
  /** The pool, once the tables are there. */
  pool(): Promise<Pool>
  assertOpen(): void
  readonly ended: boolean
  /** From now on `assertOpen` throws; what is under way goes on until `close`. */
  end(): void
  close(): Promise<void>
}

export const loadPg = async () => (await optionalPackage(() => import('pg'), 'postgres()', 'pg@8')).default

export function openDatabase({ url, schema, poolSize, name }: CheckedOptions): Database {
  let ended = false
  let pool: Pool | undefined
  let ready: Promise<Pool> | undefined

  const assertOpen = () => {
    if (ended) throw closedError(name)
  }

  async function open(): Promise<Pool> {
    const { Pool } = await loadPg()
    pool ??= new Pool({
      connectionString: url,
      max: poolSize,
      connectionTimeoutMillis: CONNECT_MS,
      query_timeout: STATEMENT_MS,
      idleTimeoutMillis: 30_000,
      allowExitOnIdle: true,
      application_name: 'oxbow',
      keepAlive: true,
    })
    // A connection that the server ends while it is idle, or in the hands of the queue: the next use opens another.
    const ignore = () => {}
    pool.on('error', ignore)
    pool.on('connect', (client) => client.on('error', ignore))
    await migrate(pool, schema, name)
    return pool
  }

  const opened = (): Promise<Pool> => {
    ready ??= open().catch((error: unknown) => {
      // The next call tries again: the server may have been starting.
      ready = undefined
      throw error
    })
    return ready
  }

  async function raw<Row extends QueryResultRow>(sql: string, values: readonly unknown[] = []): Promise<Row[]> {
    const { rows } = await (await opened()).query<Row>(sql, [...values])
    return rows
  }

  return {
    name,
    schema,
    raw,
    assertOpen,
    pool: opened,
    async query(sql, values) {
      try {
        return await raw(sql, values)
      } catch (error) {
        throw error instanceof OxbowError ? error : postgresError(name, error)
      }
    },
    get ended() {
      return ended
    },
    end() {
      ended = true
    },
    async close() {
      await ready?.catch(() => {})
      await pool?.end()
    },
  }
}
