// One reader of a session. It may stop reading for hours: missed events are not buffered but read from the journal.
import type { Event, SessionItem } from '../events/types.ts'
import { isEvent } from '../events/types.ts'

/** Items that wait for one reader. Beyond it fragments are dropped, and stored events are read again later. */
const MAX_WAITING = 512

export interface FollowerSource {
  /** The sequence number up to which followers have received events. */
  seq(): number
  read(afterSeq: number): Promise<Event[]>
  /** The answer that is being streamed now, as if it began here. */
  soFar(): SessionItem[]
}

/** The items that a reader receives. */
export interface FollowerChoice {
  /** Default: true. */
  readonly fragments?: boolean
  readonly turnId?: string | undefined
  /** The reader is done after this event. */
  readonly isLast?: (event: Event) => boolean
}

export interface Follower extends AsyncIterableIterator<SessionItem> {
  /** Called by the session's log, synchronously, per item. */
  push(item: SessionItem): void
  fail(error: unknown): void
}

/**
 * Delivers each event with `seq > after` once and in order, with fragments between them while the reader keeps up.
 * With `fragments: false` only events are delivered, with a `turnId` only what belongs to that turn.
 * `onClose` runs once, when the reader leaves or `fail` has been delivered.
 */
export function follower(
  source: FollowerSource,
  after: number,
  only: FollowerChoice,
  onClose: (self: Follower) => void,
): Follower {
  let cursor = after
  let behind = after < source.seq()
  const { fragments = true, turnId, isLast } = only
  const wanted = (item: SessionItem): boolean =>
    (fragments || isEvent(item)) && (turnId === undefined || ('turnId' in item && item.turnId === turnId))
  const soFar = (): SessionItem[] => source.soFar().filter(wanted)
  let waiting: SessionItem[] = behind ? [] : soFar()
  let next = 0
  let wake: (() => void) | undefined
  let failure: { error: unknown } | undefined
  let closed = false

  const close = (): void => {
    if (closed) return
    closed = true
    waiting = []
    onClose(self)
    wake?.()
  }

  /** Reads missed events; when none are left, switches to live events in the same synchronous stretch. */
  async function catchUp(): Promise<void> {
    const events = await source.read(cursor)
    const last = events.at(-1)
    waiting = events
    next = 0
    if (last === undefined && cursor < source.seq())
      throw new Error(`the journal ends at ${cursor}, though ${source.seq()} events have been stored`)
    if ((last?.seq ?? cursor) >= source.seq()) {
      behind = false
      waiting = [...events, ...soFar()]
    }
  }

  const self: Follower = {
    [Symbol.asyncIterator]: () => self,
    push(item) {
      if (closed || behind || !wanted(item)) return
      if (waiting.length - next >= MAX_WAITING) {
        behind = true
        waiting = []
        next = 0
        return
      }
      waiting.push(item)
      wake?.()
    },
    fail(error) {
      failure ??= { error }
      wake?.()
    },
    async next() {
      for (;;) {
        if (closed) return { done: true, value: undefined }
        const item = waiting[next]
        if (item !== undefined) {
          next += 1
          if (next === waiting.length) {
            waiting = []
            next = 0
          }
          if (!isEvent(item)) return { done: false, value: item }
          if (item.seq <= cursor) continue
          cursor = item.seq
          if (!wanted(item)) continue
          if (isLast?.(item)) close()
          return { done: false, value: item }
        }
        if (failure !== undefined) {
          close()
          throw failure.error
        }
        if (behind) {
          await catchUp().catch((error: unknown) => self.fail(error))
          continue
        }
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        wake = undefined
      }
    },
    async return() {
      close()
      return { done: true, value: undefined }
    },
  }
  return self
}
