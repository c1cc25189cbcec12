// Token buckets in memory, one per name: a burst of one minute's worth, then as fast as it refills.
import { boundedMap } from './bounded-map.ts'

export interface Buckets {
  /** Takes one. 0: granted; else the milliseconds until there is one again. */
  take(name: string): number
  /** The same without taking. */
  wait(name: string): number
}

const MINUTE_MS = 60_000
/** Names beyond these push out those that were used least recently, whose buckets are full by then. */
const MAX_NAMES = 50_000

export function buckets(perMinute: number, now: () => number = () => performance.now()): Buckets {
  const perToken = MINUTE_MS / perMinute
  const names = boundedMap<{ tokens: number; at: number }>(MAX_NAMES)

  function look(name: string): { tokens: number; at: number } {
    const at = now()
    const bucket = names.get(name) ?? { tokens: perMinute, at }
    bucket.tokens = Math.min(perMinute, bucket.tokens + (at - bucket.at) / perToken)
    bucket.at = at
    return bucket
  }
  const waitOf = ({ tokens }: { tokens: number }): number => (tokens >= 1 ? 0 : Math.ceil((1 - tokens) * perToken))

  return {
    take(name) {
      const bucket = look(name)
      const wait = waitOf(bucket)
      if (wait === 0) bucket.tokens -= 1
      names.set(name, bucket)
      return wait
    },
    wait: (name) => waitOf(look(name)),
  }
}
