// Jobs on the same server, with BullMQ.
import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Job, Queue } from '@oxbow/core'
import { optionalPackage } from '@oxbow/core/internal'
import type { Queue as Jobs, Worker } from 'bullmq'
import { assertKey, mapKey } from '../keys.ts'
import { redisError, type Server } from './server.ts'

const NAME = 'jobs'
const MAX_ATTEMPTS = 10
const FIRST_PAUSE_MS = 1_000
/** How long the end of a worker is waited for once its jobs are done. */
const CLOSE_WITHIN_MS = 2_000
const ANSWER_WITHIN_MS = 5_000

const load = () => optionalPackage(() => import('bullmq'), 'The queue of redis()', 'bullmq@6')

export function redisQueue(server: Server, url: string, prefix: string): Queue & { close(): Promise<void> } {
  const workers = new Set<{ stop(): Promise<void> }>()
  let opening: Promise<Jobs<Job>> | undefined
  // BullMQ joins names with colons.
  const settings = { prefix: `${prefix}bull`, skipVersionCheck: true }

  const opened = (): Promise<Jobs<Job>> => {
    opening ??= (async () => {
      const { Queue: JobQueue } = await load()
      const jobs = new JobQueue<Job>(NAME, { ...settings, connection: { url, maxRetriesPerRequest: 1 } })
      jobs.on('error', () => {})
      return jobs
    })()
    return opening
  }

  /**
   * A session has two ids for its jobs: one may be at work while the other waits. Two processes that add one at the same
   * moment make one job, because BullMQ ignores an id that is there.
   */
  async function add(jobs: Jobs<Job>, job: Job, runAt: number): Promise<void> {
    const id = createHash('sha256').update(mapKey(job.key)).digest('hex')
    for (const jobId of [`${id}-a`, `${id}-b`]) {
      const known = await jobs.getJob(jobId)
      const state = await known?.getState()
      if (state === 'active') continue
      if (known !== undefined && (state === 'waiting' || state === 'prioritized')) return
      if (known !== undefined && state === 'delayed') {
        if (runAt <= Date.now()) await known.promote()
        else if (runAt < known.timestamp + known.delay) await known.changeDelay(runAt - Date.now())
        return
      }
      await known?.remove()
      await jobs.add(NAME, job, {
        jobId,
        delay: Math.max(0, runAt - Date.now()),
        attempts: MAX_ATTEMPTS,
        backoff: { type: 'exponential', delay: FIRST_PAUSE_MS },
        removeOnComplete: true,
      })
      return
    }
  }

  /** BullMQ waits for a server that is away without end; callers must not. */
  const guarded = async <T>(run: () => Promise<T>): Promise<T> => {
    const late = delay(ANSWER_WITHIN_MS, undefined, { ref: false }).then(() => {
      throw new Error('no answer')
    })
    try {
      return await Promise.race([run(), late])
    } catch (error) {
      throw redisError(server.name, error)
    }
  }

  return {
    async enqueue({ key, reason }, runAt = Date.now()) {
      server.assertOpen()
      assertKey(key)
      await guarded(async () => add(await opened(), { key, reason }, runAt))
    },

    work(handle, concurrency) {
      server.assertOpen()
      const running: Promise<Worker<Job> | undefined> = (async () => {
        const { Worker: JobWorker } = await load()
        const worker = new JobWorker<Job>(NAME, ({ data }) => handle(data), {
          ...settings,
          concurrency,
          connection: { url, maxRetriesPerRequest: null },
        })
        worker.on('error', () => {})
        return worker
      })().catch(() => undefined)
      const own = {
        async stop() {
          if (!workers.delete(own)) return
          const worker = await running
          if (worker === undefined) return
          // It may block until a job that is due later. What it had taken without a start is handed out again.
          const closed = worker.close().catch(() => {})
          const late = Symbol('late')
          const limit = delay(CLOSE_WITHIN_MS, late, { ref: false })
          if ((await Promise.race([closed, limit])) === late) void worker.disconnect().catch(() => {})
        },
      }
      workers.add(own)
      return own
    },

    async depth() {
      server.assertOpen()
      return guarded(async () => {
        const jobs = await opened()
        const [waiting, failed, [oldest]] = await Promise.all([
          jobs.getJobCountByTypes('waiting', 'prioritized'),
          jobs.getFailedCount(),
          jobs.getJobs(['waiting'], 0, 0, true),
        ])
        const late = oldest === undefined ? 0 : Date.now() - oldest.timestamp - oldest.delay
        return { due: waiting, failed, oldestMs: Math.max(0, late) }
      })
    },

    async close() {
      // Workers that were left at work: their jobs are handed out again.
      await guarded(() => Promise.all([...workers].map((it) => it.stop()))).catch(() => {})
      const jobs = await opening?.catch(() => undefined)
      if (jobs !== undefined) await guarded(() => jobs.close()).catch(() => jobs.disconnect())
    },
  }
}
