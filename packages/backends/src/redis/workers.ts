// The leases of workers, by the clock of the server, and locks with fencing tokens.
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Locks, WorkerStatus, Workers } from '@oxbow/core'
import { assertName } from '../keys.ts'
import type { Server } from './server.ts'

const BEATS_PER_LEASE = 4

export function redisWorkers(server: Server, leaseMs: number): Workers & { close(): void } {
  const { key: keyOf } = server
  const announced = new Map<string, string>()
  let timer: NodeJS.Timeout | undefined

  async function write(worker: string, announcement: string): Promise<void> {
    await server.run((redis) =>
      redis
        .multi()
        .hset(keyOf('worker', worker), { host: hostname(), pid: process.pid, announced: announcement })
        .pexpire(keyOf('worker', worker), leaseMs)
        .exec(),
    )
  }

  const stop = () => {
    clearInterval(timer)
    timer = undefined
  }

  async function status(worker: string): Promise<WorkerStatus | undefined> {
    server.assertOpen()
    const answers = await server.run((redis) =>
      redis.multi().hmget(keyOf('worker', worker), 'host', 'pid').pttl(keyOf('worker', worker)).exec(),
    )
    const [[, row], [, left]] = answers as [[unknown, (string | null)[]], [unknown, number]]
    const [host, pid] = row
    if (!host || left <= 0) return undefined
    return { alive: true, host, pid: Number(pid), silentMs: announced.has(worker) ? 0 : Math.max(0, leaseMs - left) }
  }

  return {
    async announce(worker) {
      server.assertOpen()
      assertName(worker, 'worker')
      const announcement = randomUUID()
      await write(worker, announcement)
      announced.set(worker, announcement)
      // A beat that fails is made good by the next; a lease that ends meanwhile costs only work that is done twice.
      timer ??= setInterval(() => {
        for (const [it, own] of announced) write(it, own).catch(() => {})
      }, leaseMs / BEATS_PER_LEASE).unref()
      return {
        async release() {
          if (announced.get(worker) !== announcement) return
          announced.delete(worker)
          if (announced.size === 0) stop()
          if (!server.ended) await server.run((redis) => redis.oxbowRelease(keyOf('worker', worker), announcement))
        },
      }
    },
    async alive(worker) {
      return (await status(worker)) !== undefined
    },
    status,
    /** Workers that were not released keep their turns until their lease ends. */
    close: stop,
  }
}

export function redisLocks(server: Server): Locks {
  const { key: keyOf } = server
  return {
    async acquire(name, ttlMs) {
      server.assertOpen()
      assertName(name, 'lock')
      const operation = randomUUID()
      const lock = keyOf('lock', name)
      const token = await server.run((redis) =>
        redis.oxbowAcquire(lock, keyOf('lock', name, 'last'), operation, Math.ceil(ttlMs)),
      )
      if (token === 0) return undefined
      return {
        token,
        renew: async (ms) => (await server.run((redis) => redis.oxbowKeep(lock, operation, Math.ceil(ms)))) === 1,
        release: async () => {
          await server.run((redis) => redis.oxbowKeep(lock, operation, 0))
        },
      }
    },
  }
}
