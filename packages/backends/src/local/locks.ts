// Locks between the parts of one process.
import type { Locks } from '@oxbow/core'
import { assertName } from '../keys.ts'

export function localLocks(assertOpen: () => void): Locks {
  const held = new Map<string, { readonly token: number; until: number }>()
  let lastToken = 0
  return {
    async acquire(name, ttlMs) {
      assertOpen()
      assertName(name, 'lock')
      const now = performance.now()
      if ((held.get(name)?.until ?? 0) > now) return undefined
      lastToken += 1
      const token = lastToken
      held.set(name, { token, until: now + ttlMs })
      const own = () => {
        const lock = held.get(name)
        return lock?.token === token && lock.until > performance.now() ? lock : undefined
      }
      return {
        token,
        async renew(ms) {
          assertOpen()
          const lock = own()
          if (lock !== undefined) lock.until = performance.now() + ms
          return lock !== undefined
        },
        async release() {
          if (held.get(name)?.token === token) held.delete(name)
        },
      }
    },
  }
}
