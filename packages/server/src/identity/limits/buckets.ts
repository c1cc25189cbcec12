// Token buckets in memory, one per name: a burst of one minute's requests, then a steady refill.
import { boundedMap } from './bounded-map.ts'

export interface Buckets {
  /** Takes one token. 0: granted; otherwise the milliseconds until the next token. */
  take(name: string): number
  /** Like `take`, without taking a token. */
  wait(name: string): number
}

const MINUTE_MS = 60_000
/** Beyond this number, the least recently used names are dropped; their buckets are full by then. */
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
