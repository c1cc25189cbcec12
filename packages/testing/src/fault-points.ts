// The engine calls `faultPoint?.('append.before')` and the like at the places where a crash is interesting.

import type { FaultPoint } from '@oxbow/core'

/**
 * Kills this process with SIGKILL, which nothing can catch, when it passes the point for the n-th time (1 is the
 * first). Meant for child processes.
 *
 * @example
 * const faultPoint = killAt('append.after', 2)
 */
export function killAt(name: string, hit = 1): FaultPoint {
  let hits = 0
  return (point) => {
    if (point === name && ++hits === hit) process.kill(process.pid, 'SIGKILL')
  }
}

/**
 * Lists the points that a run passes, in order, so that a test can then kill at each of them.
 *
 * @example
 * const { faultPoint, hits } = recordPoints()
 * // … run …
 * for (const [name, count] of hits) …
 */
export function recordPoints(): {
  readonly faultPoint: FaultPoint
  readonly passed: readonly string[]
  /** How often each point was passed, in order of first occurrence. */
  readonly hits: ReadonlyMap<string, number>
} {
  const passed: string[] = []
  const hits = new Map<string, number>()
  return {
    faultPoint: (name) => {
      passed.push(name)
      hits.set(name, (hits.get(name) ?? 0) + 1)
    },
    passed,
    hits,
  }
}
