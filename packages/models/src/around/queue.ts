// How many requests a provider gets at once and per minute, and which is next.
import { ModelError } from '@oxbow/core'
import { anything, type Fields } from '@oxbow/core/internal'
import { checkNumbers } from '../check-numbers.ts'
import { checkModelOptions } from '../check-options.ts'

export interface QueueOptions {
  /** How many requests may run at the same time. Default 64. */
  readonly concurrency?: number
  /** How many may start per minute. Default: no limit. */
  readonly requestsPerMinute?: number
  /** How many may wait; one more is refused. Default 1,000. */
  readonly waiting?: number
  /** How long one may wait, in milliseconds. Default 60,000. */
  readonly waitMs?: number
}

export interface RequestQueue {
  readonly running: number
  readonly waiting: number
  /**
   * Resolves when a request may start, with the function to call when it has ended. Sessions take turns: one with a
   * hundred requests does not hold up the others. `check` runs when the request's turn comes: its error is thrown
   * instead, and the next request starts in its place.
   * @throws ModelError `overloaded` when too many wait or the wait was too long, `cancelled` when `signal` aborts
   */
  enter(provider: string, session: string, signal: AbortSignal, check?: () => void): Promise<() => void>
}

const FIELDS: Fields<QueueOptions> = {
  concurrency: anything,
  requestsPerMinute: anything,
  waiting: anything,
  waitMs: anything,
}

interface Waiter {
  /** False when the request is no longer wanted. */
  start(): boolean
}

/**
 * One for each provider: a slow one fills only its own queue.
 *
 * @throws OxbowError `model_config` for a number that is not valid
 * @example const model = guardModel(driver, { queue: requestQueue({ concurrency: 4 }) })
 */
export function requestQueue(options: QueueOptions = {}): RequestQueue {
  checkModelOptions('requestQueue()', options, FIELDS)
  const {
    concurrency = 64,
    requestsPerMinute = Number.POSITIVE_INFINITY,
    waiting: most = 1_000,
    waitMs = 60_000,
  } = options
  checkNumbers('requestQueue', {
    concurrency: [concurrency, { least: 1, whole: true }],
    requestsPerMinute: [requestsPerMinute, { above: 0 }],
    waiting: [most, { least: 0, whole: true }],
    waitMs: [waitMs, { least: 0 }],
  })
  const rate = paced(requestsPerMinute)
  /** In the order in which the sessions are served. */
  const sessions = new Map<string, Set<Waiter>>()
  let running = 0
  let waiting = 0
  let timer: NodeJS.Timeout | undefined

  const leave = (): void => {
    running--
    serve()
  }
  const serve = (): void => {
    while (running < concurrency && waiting > 0) {
      const delayMs = rate.delayMs()
      if (delayMs > 0) {
        timer ??= setTimeout(() => {
          timer = undefined
          serve()
        }, delayMs)
        return
      }
      const [session, waiters] = sessions.entries().next().value!
      const [waiter] = waiters
      remove(session, waiters, waiter!)
      // The session goes to the end of the queue.
      if (waiters.size > 0) sessions.delete(session)
      if (waiters.size > 0) sessions.set(session, waiters)
      if (!waiter!.start()) continue
      rate.take()
      running++
    }
    stopTimer()
  }
  const stopTimer = (): void => {
    if (waiting > 0) return
    clearTimeout(timer)
    timer = undefined
  }
  const remove = (session: string, waiters: Set<Waiter>, waiter: Waiter): void => {
    if (!waiters.delete(waiter)) return
    waiting--
    if (waiters.size === 0) sessions.delete(session)
  }
  /** The timer stops with the last waiting request. */
  const giveUp = (session: string, waiters: Set<Waiter>, waiter: Waiter): void => {
    remove(session, waiters, waiter)
    stopTimer()
  }

  return {
    get running() {
      return running
    },
    get waiting() {
      return waiting
    },
    async enter(provider, session, signal, check) {
      const { promise, resolve, reject } = Promise.withResolvers<() => void>()
      const waiters = sessions.get(session) ?? new Set()
      const waiter: Waiter = {
        start() {
          try {
            check?.()
          } catch (error) {
            reject(error)
            return false
          }
          resolve(once(leave))
          return true
        },
      }
      sessions.set(session, waiters.add(waiter))
      waiting++
      serve()
      if (!waiters.has(waiter)) return promise
      if (waiting > most) {
        giveUp(session, waiters, waiter)
        throw full(provider, `${waiting} requests are already waiting`)
      }
      const fail = (error: ModelError) => {
        giveUp(session, waiters, waiter)
        reject(error)
      }
      const cancel = () =>
        fail(new ModelError('cancelled', 'The model call was cancelled while it waited for its turn.'))
      const tooLong = setTimeout(() => fail(full(provider, `it waited ${waitMs} ms for its turn`)), waitMs)
      if (signal.aborted) cancel()
      else signal.addEventListener('abort', cancel, { once: true })
      try {
        return await promise
      } finally {
        clearTimeout(tooLong)
        signal.removeEventListener('abort', cancel)
      }
    },
  }
}

const full = (provider: string, why: string): ModelError =>
  new ModelError('overloaded', `A request to ${provider} was refused: ${why}. Try again in a moment.`, {
    retryable: true,
    details: { queue: true },
  })

function once(act: () => void): () => void {
  let done = false
  return () => {
    if (done) return
    done = true
    act()
  }
}

/** The burst: this share of a minute's requests may start at once; the rest are spread. */
const BURST_SHARE = 1 / 20

/** The generic cell rate algorithm (ITU-T I.371): one number gives the time when the next request conforms. */
function paced(perMinute: number): { delayMs(): number; take(): void } {
  const intervalMs = 60_000 / perMinute
  const toleranceMs = Math.max(0, Math.floor(perMinute * BURST_SHARE) - 1) * intervalMs
  let next = 0
  return {
    delayMs: () => (intervalMs === 0 ? 0 : Math.ceil(Math.max(0, next - toleranceMs - performance.now()))),
    take() {
      next = Math.max(next, performance.now()) + intervalMs
    },
  }
}
