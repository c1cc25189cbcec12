// The number of streams that one principal may have open.
import type { Principal } from '@oxbow/core'
import { HttpError } from '../../http/errors.ts'
import { nameOfPerson } from '../refresh.ts'

export interface StreamSlots {
  /**
   * Call the result when the stream is closed.
   *
   * @throws HttpError 429 `too_many_streams`
   */
  take(principal: Principal): () => void
}

/** @param max 0: no limit */
export function streamSlots(max: number): StreamSlots {
  const open = new Map<string, number>()
  return {
    take(principal) {
      if (max === 0) return () => {}
      const who = nameOfPerson(principal)
      const count = open.get(who) ?? 0
      if (count >= max)
        throw new HttpError(
          429,
          'too_many_streams',
          `You have ${max} streams open. Close one before you open another.`,
          {
            'retry-after': '5',
          },
        )
      open.set(who, count + 1)
      let isOpen = true
      return () => {
        if (!isOpen) return
        isOpen = false
        const left = open.get(who)! - 1
        if (left > 0) open.set(who, left)
        else open.delete(who)
      }
    },
  }
}
