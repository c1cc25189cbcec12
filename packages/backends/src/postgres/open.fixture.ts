// A database of its own for each directory that a test names.
import { createHash } from 'node:crypto'
import pg from 'pg'
import { postgres } from './index.ts'

const server = process.env.OXBOW_TEST_POSTGRES ?? 'postgres://postgres@127.0.0.1:5432/postgres'

const databaseOf = (directory: string) => `oxbow_${createHash('sha256').update(directory).digest('hex').slice(0, 16)}`

export function urlOf(directory: string): string {
  const url = new URL(server)
  url.pathname = databaseOf(directory)
  return url.href
}

export async function onServer<T>(run: (client: pg.Client) => Promise<T>, url = server): Promise<T> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 })
  await client.connect()
  try {
    return await run(client)
  } finally {
    await client.end()
  }
}

/** Why tests cannot use a server; undefined when they can. */
export const missing: string | undefined = await onServer((client) => client.query('SELECT 1')).then(
  () => undefined,
  (error: Error) => `no PostgreSQL at ${new URL(server).host}: ${error.message}`,
)

if (missing !== undefined && process.env.CI) throw new Error(missing)

export async function open(directory: string) {
  await onServer((client) => client.query(`CREATE DATABASE ${databaseOf(directory)}`)).catch(
    (error: { code?: string }) => {
      // It is there (also when another process makes it at the same moment).
      if (error.code !== '42P04' && error.code !== '23505') throw error
    },
  )
  const backend = postgres({ url: urlOf(directory) })
  await backend.check()
  return backend
}

export const drop = (directory: string) =>
  onServer((client) => client.query(`DROP DATABASE IF EXISTS ${databaseOf(directory)} WITH (FORCE)`))
