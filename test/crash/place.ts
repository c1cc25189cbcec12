// The store of a life: a file in its directory, or a schema that is named after it.
import { basename, join } from 'node:path'
import { memory, postgres, redis, sqlite, tiered } from '@oxbow/backends'
import type { Backend } from '@oxbow/core'
import pg from 'pg'

export const STORES = ['sqlite', 'postgres', 'tiered'] as const
export type Store = (typeof STORES)[number]

/** Why a store cannot be used here; undefined when it can. */
export const missingFor = (store: Store): string | undefined =>
  store !== 'sqlite' && process.env.OXBOW_TEST_POSTGRES === undefined
    ? 'OXBOW_TEST_POSTGRES is not set'
    : store === 'tiered' && process.env.OXBOW_TEST_REDIS === undefined
      ? 'OXBOW_TEST_REDIS is not set'
      : undefined

const schemaOf = (directory: string): string =>
  `oxbow_${basename(directory)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '_')}`

/** A dead process keeps its turn for a second. `directory` is empty for a store that need not outlive the process. */
export function storeAt(directory: string, store: Store): Backend {
  if (directory === '') return memory()
  if (store === 'sqlite') return sqlite({ path: join(directory, 'oxbow.db') })
  const schema = schemaOf(directory)
  const durable = postgres({ url: process.env.OXBOW_TEST_POSTGRES!, schema, leaseMs: 1_000 })
  if (store === 'postgres') return durable
  return tiered({ store: durable, hot: redis({ url: process.env.OXBOW_TEST_REDIS!, prefix: schema }) })
}

/** Removes what the store left outside of the directory. Keys in Redis expire, or go with its memory. */
export async function dropStore(directory: string, store: Store): Promise<void> {
  if (store === 'sqlite') return
  const client = new pg.Client({ connectionString: process.env.OXBOW_TEST_POSTGRES! })
  await client.connect()
  const schema = schemaOf(directory)
  await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE; DROP SCHEMA IF EXISTS ${schema}_jobs CASCADE`)
  await client.end()
}
