// Checks again whether readers of open streams may still read them: a request is checked once, but a stream may last
// for hours.
import type { Principal } from '@oxbow/core'
import { mayActFor } from '@oxbow/core/internal'
import { WITHDRAWN } from '../failures.ts'
import { HttpError } from '../http/errors.ts'
import type { Identity } from '../identity/contract.ts'
import type { Caller } from '../principal.ts'

export interface WatchedReading {
  /** Fires when the reader may no longer read. */
  readonly withdrawn: AbortSignal
  /** Call it when the stream has ended. */
  done(): void
}

export interface Rights {
  watch(caller: Caller): WatchedReading
  /**
   * Call it when a request begins to wait, and call the result before its answer is sent: the caller may have lost the
   * right meanwhile.
   *
   * @throws (the result) HttpError 401 `access_withdrawn`; OxbowError `identity_unavailable` when the rights cannot be
   * checked
   */
  before(caller: Caller): () => Promise<void>
  close(): void
}

interface Watched {
  readonly principal: Principal
  readonly readers: Set<{ readonly owner: Caller['owner']; readonly controller: AbortController }>
}

/** The maximum number of concurrent questions to the host. */
const AT_ONCE = 10

/** Checks once per interval and principal, however many streams it reads, and only while it reads. */
export function streamRights(
  { mode, refresh }: Pick<Identity, 'mode' | 'refresh'>,
  options: { readonly intervalMs: number; readonly maxAgeMs: number; readonly onError: (error: unknown) => void },
): Rights {
  const watched = new Map<string, Watched>()
  let timer: NodeJS.Timeout | undefined
  let asking = false

  async function ask({ principal, readers }: Watched): Promise<void> {
    let now: Principal | undefined
    try {
      now = await refresh(principal, { reading: true })
    } catch (error) {
      // An unavailable host does not withdraw access; its failure was logged where it occurred.
      if ((error as { code?: unknown }).code !== 'identity_unavailable') options.onError(error)
      return
    }
    for (const { owner, controller } of readers) if (now === undefined || !mayActFor(now, owner)) controller.abort()
  }

  async function askAll(): Promise<void> {
    if (asking) return
    asking = true
    const queue = [...watched.values()]
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
      // A user with several credentials may read for as long as each of them is valid.
      const name = JSON.stringify(principal)
      const entry = watched.get(name) ?? { principal, readers: new Set() }
      watched.set(name, entry)
      const reader = { owner, controller }
      entry.readers.add(reader)
      timer ??= setInterval(() => void askAll(), options.intervalMs).unref()
      return {
        withdrawn: controller.signal,
        done() {
          entry.readers.delete(reader)
          if (entry.readers.size === 0 && watched.get(name) === entry) watched.delete(name)
          if (watched.size > 0) return
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
