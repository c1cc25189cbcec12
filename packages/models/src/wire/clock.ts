import { checkNumbers, DURATION } from '../check-numbers.ts'

export interface Timeouts {
  /** Until the first byte of the body. Default 60 s. */
  readonly firstByteMs?: number
  /** Between two frames with content; keep-alive comments do not count. Default 30 s. */
  readonly idleMs?: number
  /** For the whole answer. Default 10 min. */
  readonly totalMs?: number
}

export type TimeoutCode = 'first_byte_timeout' | 'idle_timeout' | 'total_timeout'

export interface Clock {
  /** Call at the first byte; from then on the idle limit applies. */
  firstByte(): void
  /** Cheap: notes the time, touches no timer. */
  progress(): void
  /** The answer is complete but the provider may still send its usage: wait at most `ms` for it. */
  closing(ms: number): void
  stop(): void
}

/** @throws OxbowError `model_config` */
export const checkTimeouts = (of: string, { firstByteMs, idleMs, totalMs }: Timeouts): void =>
  checkNumbers(of, {
    'timeouts.firstByteMs': [firstByteMs, DURATION],
    'timeouts.idleMs': [idleMs, DURATION],
    'timeouts.totalMs': [totalMs, DURATION],
  })

/** Watches one answer with one timer, which is set again only when it fires too early. */
export function startClock(timeouts: Timeouts, onTimeout: (code: TimeoutCode, limitMs: number) => void): Clock {
  const { firstByteMs = 60_000, idleMs = 30_000, totalMs = 600_000 } = timeouts
  const start = performance.now()
  let last = start
  let limit = firstByteMs
  let code: TimeoutCode = 'first_byte_timeout'
  let timer: NodeJS.Timeout | undefined
  let immediate: NodeJS.Immediate | undefined

  /** `read`: everything that had arrived has been read. */
  const check = (read: boolean) => {
    const now = performance.now()
    const late = now >= start + totalMs || now >= last + limit
    if (!late) arm(now)
    // This process may have been the one that was busy: what came meanwhile is read between a timer and an immediate.
    else if (!read) immediate = setImmediate(check, true)
    else if (now >= start + totalMs) onTimeout('total_timeout', totalMs)
    else onTimeout(code, limit)
  }
  const arm = (now: number) => {
    clearTimeout(timer)
    const delayMs = Math.ceil(Math.min(start + totalMs, last + limit) - now)
    timer = setTimeout(check, Math.min(delayMs, 2 ** 31 - 1), false)
  }
  arm(start)

  const setLimit = (ms: number) => {
    code = 'idle_timeout'
    limit = ms
    last = performance.now()
    arm(last)
  }
  return {
    firstByte: () => setLimit(idleMs),
    progress: () => {
      last = performance.now()
    },
    closing: (ms) => setLimit(Math.min(ms, idleMs)),
    stop: () => {
      clearTimeout(timer)
      clearImmediate(immediate)
    },
  }
}
