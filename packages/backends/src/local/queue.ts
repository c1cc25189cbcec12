// Jobs of one process, in its memory.
import type { Job, Queue } from '@oxbow/core'
import { assertKey, mapKey } from '../keys.ts'

export const MAX_ATTEMPTS = 10

/** The pause before the next attempt: 1 s, 2 s, 4 s … at most 5 minutes. */
export const backOffMs = (attempts: number): number => Math.min(1_000 * 2 ** (attempts - 1), 300_000)

interface Waiting extends Job {
  readonly runAt: number
  readonly attempts: number
}

interface Worker {
  readonly handle: (job: Job) => Promise<void>
  readonly concurrency: number
  readonly running: Set<Promise<void>>
}

const MAX_TIMER_MS = 2 ** 31 - 1

export function localQueue(assertOpen: () => void): Queue & { close(): void } {
  const jobs = new Map<string, Waiting>()
  const workers = new Set<Worker>()
  let failed = 0
  let timer: NodeJS.Timeout | undefined

  function add(job: Waiting): void {
    const id = mapKey(job.key)
    const before = jobs.get(id)
    if (before === undefined || job.runAt < before.runAt) jobs.set(id, job)
    handOut()
  }

  function handOut(): void {
    clearTimeout(timer)
    const now = Date.now()
    const byTime = [...jobs].toSorted(([, a], [, b]) => a.runAt - b.runAt)
    for (const [id, job] of byTime) {
      if (job.runAt > now) {
        timer = setTimeout(handOut, Math.min(job.runAt - now, MAX_TIMER_MS)).unref()
        return
      }
      const worker = [...workers].find(({ running, concurrency }) => running.size < concurrency)
      if (worker === undefined) return
      jobs.delete(id)
      start(worker, job)
    }
  }

  function start({ handle, running }: Worker, job: Waiting): void {
    const handled = async () => {
      // Not before it is counted: what it enqueues must find it at work.
      await Promise.resolve()
      return handle({ key: job.key, reason: job.reason })
    }
    const work = handled()
      .catch(() => {
        const attempts = job.attempts + 1
        if (attempts >= MAX_ATTEMPTS) failed += 1
        else add({ ...job, attempts, runAt: Date.now() + backOffMs(attempts) })
      })
      .finally(() => {
        running.delete(work)
        handOut()
      })
    running.add(work)
  }

  return {
    async enqueue({ key, reason }, runAt = Date.now()) {
      assertOpen()
      assertKey(key)
      add({ key, reason, runAt, attempts: 0 })
    },
    work(handle, concurrency) {
      assertOpen()
      const worker: Worker = { handle, concurrency, running: new Set() }
      workers.add(worker)
      handOut()
      return {
        async stop() {
          workers.delete(worker)
          await Promise.all(worker.running)
        },
      }
    },
    async depth() {
      assertOpen()
      const now = Date.now()
      const due = [...jobs.values()].filter((it) => it.runAt <= now)
      const oldestMs = Math.max(0, ...due.map((it) => now - it.runAt))
      return { due: due.length, failed, oldestMs }
    },
    close() {
      clearTimeout(timer)
      workers.clear()
    },
  }
}
