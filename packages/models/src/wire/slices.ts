// Answers are read in slices of time: a burst in one of them, or in fifty, does not keep the rest of the process
// waiting. While the event loop is not busy each piece is read when it comes.

/** For how long answers are read before the event loop looks at everything else. */
const SLICE_MS = 2
/** So much of an answer never waits, in bytes: callers watch for the first word, and tool calls are short. */
const FIRST_BYTES = 4_096
/** A longer piece is read in parts. */
const PART_BYTES = 4_096

export interface Pieces {
  /** Reads the next piece, now or in a later slice. */
  push(bytes: Uint8Array): void
  /** Calls `done` when everything that was pushed before has been read. */
  after(done: () => void): void
}

/** Reads what waits of one answer. Returns false when it had to stop at `until`. */
type Drain = (until: number) => boolean

/** Answers with pieces that wait, oldest first. */
const waiting: Drain[] = []
let sliceEnd = 0
/** The iteration of the event loop to which the slice belongs. */
let sliceLoop = -1

const loopCount = (): number => performance.nodeTiming.uvMetricsInfo.loopCount

/** Whether a piece can be read now: the slice has time left, or the event loop has looked at everything else since. */
function hasTime(): boolean {
  const now = performance.now()
  if (now < sliceEnd) return true
  const loop = loopCount()
  if (loop === sliceLoop) return false
  sliceLoop = loop
  sliceEnd = now + SLICE_MS
  return true
}

function readSlice(): void {
  const until = performance.now() + SLICE_MS
  while (waiting.length > 0 && waiting[0]!(until)) waiting.shift()
  sliceLoop = loopCount()
  sliceEnd = 0
  if (waiting.length > 0) setImmediate(readSlice)
}

/** The pieces of one answer, in their order. */
export function inSlices(read: (bytes: Uint8Array) => void): Pieces {
  let total = 0
  let queue: (Uint8Array | (() => void))[] = []
  let next = 0
  const drain: Drain = (until) => {
    while (next < queue.length) {
      const it = queue[next++]!
      if (typeof it === 'function') it()
      else read(it)
      if (performance.now() >= until) break
    }
    if (next < queue.length) return false
    queue = []
    next = 0
    return true
  }
  const wait = (it: Uint8Array | (() => void)) => {
    if (queue.push(it) > 1) return
    if (waiting.push(drain) === 1) setImmediate(readSlice)
  }
  return {
    push(bytes) {
      for (let start = 0; start < bytes.length; start += PART_BYTES) {
        const part = bytes.length <= PART_BYTES ? bytes : bytes.subarray(start, start + PART_BYTES)
        if (queue.length === 0 && (total < FIRST_BYTES || hasTime())) read(part)
        else wait(part)
        total += part.length
      }
    },
    after(done) {
      if (queue.length === 0) done()
      else wait(done)
    },
  }
}
