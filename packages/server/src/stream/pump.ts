// Writes for many readers in slices, so that a burst for a thousand readers does not keep other requests waiting.

export interface Pump {
  /** Runs `work` soon, and again for as long as it returns true. Work that is already queued is not queued twice. */
  wake(work: () => boolean): void
}

/** How long writing may keep the event loop before other work gets its turn. */
const SLICE_MS = 8
/** How many readers are written to in one slice. What the end of a stream costs comes after the slice. */
const SLICE_READERS = 32

export function pump(): Pump {
  // A set keeps the order of insertion: work that is added again comes last.
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
      // After the promises that are due now: fragments that arrive together are written together.
      process.nextTick(run)
    },
  }
}
