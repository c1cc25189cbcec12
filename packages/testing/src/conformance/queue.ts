import assert from 'node:assert/strict'
import type { Backend, Job } from '@oxbow/core'
import { type ConformanceCheck, eventually, someKey } from './support.ts'

const job = (session: string, reason = 'input'): Job => ({ key: { ...someKey, session }, reason })

/** Collects what it is handed. */
function collector(backend: Backend, concurrency = 1, handle: (job: Job) => Promise<void> = async () => {}) {
  const handed: string[] = []
  const worker = backend.queue.work(async (it) => {
    handed.push(it.key.session)
    await handle(it)
  }, concurrency)
  return { handed, stop: () => worker.stop() }
}

export function queueConformance(check: ConformanceCheck): void {
  check('the end of work does not wait for a job that is due later', async (backend) => {
    const { handed, stop } = collector(backend)
    await backend.queue.enqueue(job('now'))
    await eventually('the job', () => handed.length === 1)
    await backend.queue.enqueue(job('later'), Date.now() + 3_600_000)
    const startedAt = performance.now()
    await stop()
    assert.ok(performance.now() - startedAt < 8_000)
  })

  check('a job is handed out with its key and reason, once it is due', async (backend) => {
    const jobs: Job[] = []
    // A queue may make its tables at its first use.
    await backend.queue.depth()
    const later = Date.now() + 1_000
    await backend.queue.enqueue(job('later'), later)
    await backend.queue.enqueue(job('now', 'turn'))
    const worker = backend.queue.work(async (it) => {
      assert.ok(it.key.session !== 'later' || Date.now() >= later)
      jobs.push(it)
    }, 4)
    await eventually('both jobs', () => jobs.length === 2)
    assert.deepEqual(jobs, [job('now', 'turn'), job('later')])
    await worker.stop()
    assert.deepEqual(await backend.queue.depth(), { due: 0, failed: 0, oldestMs: 0 })
  })

  check('a session has one job that waits, the one that is due first', async (backend) => {
    await backend.queue.enqueue(job('one', 'later'), Date.now() + 60_000)
    await backend.queue.enqueue(job('one', 'now'))
    await backend.queue.enqueue(job('one', 'later again'), Date.now() + 60_000)
    assert.equal((await backend.queue.depth()).due, 1)
    const { handed, stop } = collector(backend)
    await eventually('the job', () => handed.length === 1)
    await stop()
    assert.equal((await backend.queue.depth()).due, 0)
  })

  check('at most as many jobs as asked for are handled at once', async (backend) => {
    for (let n = 0; n < 6; n += 1) await backend.queue.enqueue(job(`s${n}`))
    let running = 0
    let most = 0
    const two = Promise.withResolvers<void>()
    const { handed, stop } = collector(backend, 2, async () => {
      running += 1
      most = Math.max(most, running)
      if (running === 2) two.resolve()
      await two.promise
      await new Promise((resolve) => setTimeout(resolve, 5))
      running -= 1
    })
    await eventually('all jobs', () => handed.length === 6)
    await stop()
    assert.equal(most, 2)
  })

  check('a job that fails is handed out again, and others meanwhile', async (backend) => {
    await backend.queue.enqueue(job('bad'))
    await backend.queue.enqueue(job('good'))
    let failures = 0
    const { handed, stop } = collector(backend, 1, async (it) => {
      if (it.key.session === 'bad' && failures++ === 0) throw new Error('not yet')
    })
    await eventually('the second attempt', () => handed.filter((it) => it === 'bad').length === 2, 10_000)
    assert.equal(handed.filter((it) => it === 'good').length, 1)
    await stop()
  })

  check('stop waits for the jobs in hand and takes no more', async (backend) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    await backend.queue.enqueue(job('held'))
    const { handed, stop } = collector(backend, 1, () => promise)
    await eventually('the job', () => handed.length === 1)
    let stopped = false
    const stopping = stop().then(() => {
      stopped = true
    })
    await backend.queue.enqueue(job('next'))
    assert.equal(stopped, false)
    resolve()
    await stopping
    assert.deepEqual(handed, ['held'])
    assert.equal((await backend.queue.depth()).due, 1)
  })
}
