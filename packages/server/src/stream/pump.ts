// Writes to many readers in slices, so that a burst for a thousand readers does not delay other requests.

export interface Pump {
  /** Runs `work` soon, and again while it returns true. Work that is already queued is not queued twice. */
  wake(work: () => boolean): void
}

/** How long writing may block the event loop before other work runs. */
const SLICE_MS = 8
/** Readers per slice. The cost of ending a stream comes after the slice. */
const SLICE_READERS = 32

export function pump(): Pump {
  // A set keeps insertion order: work that is added again runs last.
  const queue = new Set<() => boolean>()
  let scheduled = false

  const run = (): void => {
    const until = performance.now() + SLICE_MS
    let left = SLICE_READERS
    for (const work of queue) {
      queue.delete(work)
      if (work()) queue.add(work)
      left -= 1
      if (left === 0 || performance.now() >= until) break
    }
    scheduled = queue.size > 0
    if (scheduled) setImmediate(run)
  }

  return {
    wake(work) {
      queue.add(work)
      if (scheduled) return
      scheduled = true
      // Runs after pending promises, so fragments that arrive together are written together.
      process.nextTick(run)
    },
  }
}
