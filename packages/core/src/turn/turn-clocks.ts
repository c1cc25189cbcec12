// The two clocks of a turn: the time it may take in all, and the time it may take without progress.

/** Node's timers fire at once for delays beyond 24.8 days, and for Infinity. */
export const timerMs = (ms: number): number => Math.min(ms, 2 ** 31 - 1)

/** Both limits of a turn. */
export interface TurnClocks {
  /** Resets the idle clock. Cheap enough to be called per fragment. */
  touch(): void
  /** Stops the idle clock until the result is called. */
  suspend(): () => void
  /** Stops both clocks until the result is called. */
  pause(): () => void
  close(): void
}

/** Calls `expire` once a turn has run for `totalMs`, or for `idleMs` without a `touch`. */
export function turnClocks(
  totalMs: number,
  idleMs: number,
  expire: (code: 'total_timeout' | 'idle_timeout', ms: number) => void,
): TurnClocks {
  let touched = performance.now()
  let suspended = 0
  let closed = false
  let left = totalMs
  let runningSince = performance.now()
  let pauses = 0
  const totalIsOver = (): void => expire('total_timeout', totalMs)
  let total = setTimeout(totalIsOver, timerMs(totalMs))
  let idle = setTimeout(checkIdle, timerMs(idleMs))
  function checkIdle(): void {
    const left = suspended > 0 ? idleMs : idleMs - (performance.now() - touched)
    if (left > 0) idle = setTimeout(checkIdle, timerMs(left))
    else expire('idle_timeout', idleMs)
  }
  return {
    touch(): void {
      touched = performance.now()
    },
    suspend(): () => void {
      suspended += 1
      return () => {
        suspended -= 1
        touched = performance.now()
      }
    },
    pause(): () => void {
      suspended += 1
      pauses += 1
      if (pauses === 1) {
        clearTimeout(total)
        left -= performance.now() - runningSince
      }
      return () => {
        suspended -= 1
        pauses -= 1
        touched = performance.now()
        if (pauses > 0 || closed) return
        runningSince = performance.now()
        total = setTimeout(totalIsOver, timerMs(left))
      }
    },
    close(): void {
      closed = true
      clearTimeout(total)
      clearTimeout(idle)
    },
  }
}
