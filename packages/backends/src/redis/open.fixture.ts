// Keys of its own for each directory that a test names.
import { createHash } from 'node:crypto'
import { Redis } from 'ioredis'
import { redis } from './index.ts'

export const server = process.env.OXBOW_TEST_REDIS ?? 'redis://127.0.0.1:6379'

export const prefixOf = (directory: string): string =>
  `oxbow-test-${createHash('sha256').update(directory).digest('hex').slice(0, 16)}:`

export async function onServer<T>(run: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(server, { lazyConnect: true, connectTimeout: 2_000, retryStrategy: () => null })
  client.on('error', () => {})
  try {
    await client.connect()
    return await run(client)
  } finally {
    client.disconnect()
  }
}

/** Why tests cannot use a server; undefined when they can. */
export const missing: string | undefined = await onServer((client) => client.ping()).then(
  () => undefined,
  (error: Error) => `no Redis at ${new URL(server).host}: ${error.message}`,
)

if (missing !== undefined && process.env.CI) throw new Error(missing)

export async function open(directory: string) {
  const backend = redis({ url: server, prefix: prefixOf(directory) })
  await backend.check()
  return backend
}

export const drop = (directory: string) =>
  onServer(async (client) => {
    for await (const keys of client.scanStream({ match: `${prefixOf(directory)}*`, count: 1_000 }))
      if ((keys as string[]).length > 0) await client.unlink(keys as string[])
  })
