import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { requestQueue } from './queue.ts'

const signal = new AbortController().signal

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** Runs everything that does not wait for a clock. */
const settle = () => vi.advanceTimersByTimeAsync(0)

describe('requests to one provider', () => {
  test('run up to the limit at once, the next when one has ended', async () => {
    const queue = requestQueue({ concurrency: 2 })
    const leave = [await queue.enter('p', 'a', signal), await queue.enter('p', 'b', signal)]
    let third = false
    void queue.enter('p', 'c', signal).then(() => {
      third = true
    })
    await settle()
    expect([third, queue.running, queue.waiting]).toEqual([false, 2, 1])
    leave[0]!()
    leave[0]!()
    await settle()
    expect([third, queue.running, queue.waiting]).toEqual([true, 2, 0])
  })

  test('sessions take turns, however many requests one of them makes', async () => {
    const queue = requestQueue({ concurrency: 1 })
    const served: string[] = []
    const leave = await queue.enter('p', 'first', signal)
    const takeTurn = async (session: string) => {
      const done = await queue.enter('p', session, signal)
      served.push(session)
      done()
    }
    for (const session of ['greedy', 'greedy', 'greedy', 'greedy', 'modest', 'other', 'modest']) void takeTurn(session)
    leave()
    await settle()
    expect(served).toEqual(['greedy', 'modest', 'other', 'greedy', 'modest', 'greedy', 'greedy'])
  })

  test('are refused when the queue is full or the wait too long', async () => {
    const queue = requestQueue({ concurrency: 1, waiting: 1, waitMs: 500 })
    await queue.enter('p', 'a', signal)
    const slow = queue.enter('p', 'b', signal).catch((error: unknown) => error)
    await expect(queue.enter('p', 'c', signal)).rejects.toMatchObject({ code: 'overloaded' })
    await vi.advanceTimersByTimeAsync(500)
    expect(await slow).toMatchObject({ code: 'overloaded', retryable: true })
    expect(queue.waiting).toBe(0)
  })

  test('leave the queue when cancelled', async () => {
    const queue = requestQueue({ concurrency: 1 })
    const leave = await queue.enter('p', 'a', signal)
    const stop = new AbortController()
    const cancelled = queue.enter('p', 'b', stop.signal).catch((error: unknown) => error)
    const next = queue.enter('p', 'c', signal)
    stop.abort()
    expect(await cancelled).toMatchObject({ code: 'cancelled' })
    await expect(queue.enter('p', 'd', AbortSignal.abort())).rejects.toMatchObject({ code: 'cancelled' })
    leave()
    await next
    expect([queue.running, queue.waiting]).toEqual([1, 0])
  })

  test('leave no timer behind when the last is cancelled', async () => {
    const queue = requestQueue({ requestsPerMinute: 1 })
    await queue.enter('p', 'a', signal)
    const stop = new AbortController()
    const waiting = queue.enter('p', 'b', stop.signal).catch((error: unknown) => error)
    stop.abort()
    expect(await waiting).toMatchObject({ code: 'cancelled' })
    expect(vi.getTimerCount()).toBe(0)
  })

  test('start no faster than the rate after a burst of a twentieth of it', async () => {
    const queue = requestQueue({ requestsPerMinute: 60, waitMs: 600_000 })
    let started = 0
    for (let i = 0; i < 30; i++) {
      void queue.enter('p', `s${i}`, signal).then((leave) => {
        started++
        leave()
      })
    }
    await settle()
    expect(started).toBe(3)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(started).toBe(13)
    await vi.advanceTimersByTimeAsync(20_000)
    expect(started).toBe(30)
  })

  test('never exceed the limit, and all are served', async () => {
    const visit = fc.record({
      session: fc.constantFrom('a', 'b', 'c'),
      staysMs: fc.nat(50),
      cancelled: fc.boolean(),
      cancelMs: fc.nat(50),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(visit, { maxLength: 30 }), fc.integer({ min: 1, max: 4 }), async (visits, most) => {
        const queue = requestQueue({ concurrency: most })
        let ended = 0
        for (const { session, staysMs, cancelled, cancelMs } of visits) {
          const stop = new AbortController()
          if (cancelled) setTimeout(() => stop.abort(), cancelMs)
          void queue.enter('p', session, stop.signal).then(
            (leave) => {
              expect(queue.running).toBeLessThanOrEqual(most)
              setTimeout(() => {
                leave()
                ended++
              }, staysMs)
            },
            () => ended++,
          )
        }
        await vi.advanceTimersByTimeAsync(30 * 50 + 1)
        expect([ended, queue.running, queue.waiting]).toEqual([visits.length, 0, 0])
      }),
      { numRuns: 50 },
    )
  })
})
