// How many turns one process works on at once. Those of children do not count: a turn that waits for its child must not
// keep the child from its place.
export interface Places {
  /** Whether a turn may begin. */
  readonly free: boolean
  /** Takes a place, also beyond the limit. Returns how to leave it. */
  enter(): () => void
  /** Resolves when a place may be free, and at once after `close`. */
  whenFree(): Promise<void>
  close(): void
}

export function turnPlaces(most: number): Places {
  let taken = 0
  let closed = false
  let waiting: (() => void)[] = []
  const wake = (): void => {
    const all = waiting
    waiting = []
    for (const it of all) it()
  }
  return {
    get free() {
      return taken < most
    },
    enter() {
      taken += 1
      let left = false
      return () => {
        if (left) return
        left = true
        taken -= 1
        if (taken < most) wake()
      }
    },
    whenFree: () =>
      new Promise((resolve) => {
        if (closed || taken < most) resolve()
        else waiting.push(resolve)
      }),
    close() {
      closed = true
      wake()
    },
  }
}
