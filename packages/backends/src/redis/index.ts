// Everything on one Redis server, for those who accept what Redis can lose.
import type { Backend, StoreReport } from '@oxbow/core'
import { redisBus } from './bus.ts'
import { redisFiles } from './files.ts'
import { redisJournal } from './journal.ts'
import { checkRedisOptions, type RedisOptions } from './options.ts'
import { redisQueue } from './queue.ts'
import { openServer } from './server.ts'
import { redisLocks, redisWorkers } from './workers.ts'

export type { RedisOptions } from './options.ts'

/** As many events as `read` gives without a limit. */
const PAGE = 500

/**
 * A back end on one Redis server, version 6.2 or newer, without Redis Cluster. It needs the packages `ioredis` and, for the
 * queue, `bullmq`. **Redis can lose what it has acknowledged**: with `appendfsync everysec` the last second when the
 * machine fails, without an append-only file much more, and on a failover what the replica had not got. Use
 * `tiered({ store: postgres(…), hot: redis(…) })` where that may not happen.
 *
 * @throws OxbowError `invalid_option`. Operations reject with `package_missing`, `storage_busy` (cannot be reached;
 * retryable), `storage_error`, `storage_full`, `storage_readonly`, `journal_corrupt`.
 * @example const backend = redis({ url: 'redis://localhost:6379' })
 */
export function redis(options: RedisOptions): Backend {
  const { url, prefix, leaseMs, name } = checkRedisOptions(options)
  const server = openServer({ url, prefix, leaseMs, name })
  const bus = redisBus(server)
  const journal = redisJournal(server, bus)
  const workers = redisWorkers(server, leaseMs)
  const queue = redisQueue(server, url, prefix)
  let closing: Promise<void> | undefined

  async function close(): Promise<void> {
    server.end()
    workers.close()
    await queue.close()
    await journal.idle()
    await server.close()
  }

  /** Reads every event of every session; each is compared with its checksum on the way. */
  async function verify(onProgress: (done: number, total: number) => void): Promise<StoreReport> {
    server.assertOpen()
    const problems: string[] = []
    let sessions = 0
    let events = 0
    for (let before: number | undefined; ; ) {
      const page = await journal.list(before === undefined ? {} : { before })
      if (page.length === 0) break
      for (const { key } of page) {
        sessions += 1
        try {
          for (let after = 0; ; ) {
            const read = await journal.read(key, after)
            after += read.length
            events += read.length
            if (read.length < PAGE) break
          }
        } catch (error) {
          problems.push((error as Error).message)
        }
        onProgress(events, events)
      }
      before = page.at(-1)!.updatedAt
    }
    return { sessions, events, files: 0, unchecked: 0, marked: true, problems }
  }

  return {
    name,
    journal,
    files: redisFiles(server),
    workers,
    queue,
    bus,
    locks: redisLocks(server),
    async check() {
      server.assertOpen()
      // A write, because a replica answers every read.
      await server.run((it) => it.set(server.key('check'), '1', 'PX', 60_000))
      await bus.listening()
    },
    verify: (onProgress = () => {}) => verify(onProgress),
    close: () => (closing ??= close()),
  }
}
