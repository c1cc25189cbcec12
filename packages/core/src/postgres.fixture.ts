// A schema of its own on the PostgreSQL server of the machine, or the one that OXBOW_TEST_POSTGRES names.
import { randomUUID } from 'node:crypto'
import pg from 'pg'

export const postgresUrl = process.env.OXBOW_TEST_POSTGRES ?? 'postgres://postgres@127.0.0.1:5432/postgres'

async function onServer(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: postgresUrl, connectionTimeoutMillis: 2_000 })
  try {
    await client.connect()
    await client.query(statement)
  } finally {
    await client.end()
  }
}

/** Why tests cannot use a server; undefined when they can. */
export const missingPostgres: string | undefined = await onServer('SELECT 1').then(
  () => undefined,
  (error: Error) => `no PostgreSQL at ${new URL(postgresUrl).host}: ${error.message}`,
)

if (missingPostgres !== undefined && process.env.CI) throw new Error(missingPostgres)

/** A name for a schema, and the way to drop it with that of its queue. */
export function newSchema(): { schema: string; drop(): Promise<void> } {
  const schema = `oxbow_${randomUUID().replaceAll('-', '').slice(0, 16)}`
  return { schema, drop: () => onServer(`DROP SCHEMA IF EXISTS ${schema}, ${schema}_jobs CASCADE`) }
}
