// Whether those who read streams may still read them. A request is checked when it comes; a stream may last for hours.
import type { Principal } from '@oxbow/core'
import { mayActFor } from '@oxbow/core/internal'
import { WITHDRAWN } from '../failures.ts'
import { HttpError } from '../http/errors.ts'
import type { Identity } from '../identity/contract.ts'
import type { Caller } from '../principal.ts'

export interface WatchedReading {
  /** Fires when the reader may not read on. */
  readonly withdrawn: AbortSignal
  /** The stream is over. */
  done(): void
}

export interface Rights {
  watch(caller: Caller): WatchedReading
  /**
   * Call it when a request begins to wait, and the result before its answer is written: the caller may have lost the right to
   * it meanwhile.
   *
   * @throws (the result) HttpError 401 `access_withdrawn`; OxbowError `identity_unavailable` when nobody can tell
   */
  before(caller: Caller): () => Promise<void>
  close(): void
}

interface Watched {
  readonly principal: Principal
  readonly readers: Set<{ readonly owner: Caller['owner']; readonly controller: AbortController }>
}

/** Questions to the host at a time. */
const AT_ONCE = 10

/** Asks once per interval, person and credential, however many streams they read, and only while somebody reads. */
export function streamRights(
  { mode, refresh }: Pick<Identity, 'mode' | 'refresh'>,
  options: { readonly intervalMs: number; readonly maxAgeMs: number; readonly onError: (error: unknown) => void },
): Rights {
  const people = new Map<string, Watched>()
  let timer: NodeJS.Timeout | undefined
  let asking = false

  async function ask({ principal, readers }: Watched): Promise<void> {
    let now: Principal | undefined
    try {
      now = await refresh(principal, { reading: true })
    } catch (error) {
      // That nobody can tell is no "no"; the host's trouble has been logged where it was met.
      if ((error as { code?: unknown }).code !== 'identity_unavailable') options.onError(error)
      return
    }
    for (const { owner, controller } of readers) if (now === undefined || !mayActFor(now, owner)) controller.abort()
  }

  async function askAll(): Promise<void> {
    if (asking) return
    asking = true
    const queue = [...people.values()]
    const worker = async (): Promise<void> => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) await ask(next)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, worker))
    asking = false
  }

  return {
    watch({ owner, principal }) {
      const controller = new AbortController()
      if (mode === 'none') return { withdrawn: controller.signal, done: () => {} }
      // Whoever comes with several credentials may read for as long as each of them holds.
      const name = JSON.stringify(principal)
      const watched = people.get(name) ?? { principal, readers: new Set() }
      people.set(name, watched)
      const reader = { owner, controller }
      watched.readers.add(reader)
      timer ??= setInterval(() => void askAll(), options.intervalMs).unref()
      return {
        withdrawn: controller.signal,
        done() {
          watched.readers.delete(reader)
          if (watched.readers.size === 0 && people.get(name) === watched) people.delete(name)
          if (people.size > 0) return
          clearInterval(timer)
          timer = undefined
        },
      }
    },
    before({ owner, principal }) {
      const since = performance.now()
      return async () => {
        if (mode === 'none' || performance.now() - since < options.maxAgeMs) return
        const now = await refresh(principal, { reading: true })
        if (now === undefined || !mayActFor(now, owner)) throw new HttpError(401, 'access_withdrawn', WITHDRAWN)
      }
    },
    close: () => clearInterval(timer),
  }
}
