// Reads a turn once for all readers of the same form: each frame is encoded once and written to every reader.
//
// A broadcast keeps the latest frames. A reader that falls behind them continues alone from the journal, and may join
// again after any stored event that is still kept.
import { isEvent, type SessionItem } from '@oxbow/core'
import { noProgress, type Progress, parts, progressAfter } from './progress.ts'
import type { Pump } from './pump.ts'

/** An encoded frame. */
export interface Piece {
  /** Increases along the turn. */
  readonly id: number
  readonly text: string
  /** Sent even to readers that have everything up to this id: the end, or a piece without a number of its own. */
  readonly always: boolean
}

/** Encodes the items of a turn for its readers. */
export interface Encoding {
  take(item: SessionItem): readonly Piece[] | Promise<readonly Piece[]>
  readonly ended: boolean
  /** Called when the session cannot be followed any more: the last pieces for its readers. */
  fail(error: unknown): readonly Piece[]
}

export interface Wire {
  /** Undefined while the reader keeps up; otherwise resolves when the reader has caught up or left. */
  write(text: string): Promise<void> | undefined
  /** Fires when the reader has left. */
  readonly signal: AbortSignal
}

/** The position of a reader. */
export interface ReaderPosition {
  /** The last piece that the reader has. */
  readonly id: number
  /** The last stored event before or at that piece. */
  readonly seq: number
  /** How much of the answer after that event the reader has. */
  readonly progress: Progress
}

export type ReadOutcome =
  /** The turn has ended, and the reader has all of it. `whole` is true also when following the session failed. */
  { readonly type: 'ended'; readonly whole: boolean } | ({ readonly type: 'left' | 'lost' } & ReaderPosition)

export interface Broadcast {
  /** Whether everything after this event is kept. */
  holds(seq: number): boolean
  /**
   * Writes everything after `id` until the end, until `signal` fires, or until the reader has fallen too far behind.
   */
  read(from: { readonly id: number; readonly wire: Wire; readonly signal: AbortSignal }): Promise<ReadOutcome>
}

export interface Broadcasts {
  /** The broadcast of this name. `begin` is called only if there is none yet. */
  open(name: string, begin: () => Beginning): Broadcast
  find(name: string): Broadcast | undefined
}

export interface Beginning {
  readonly encoding: Encoding
  /** The number of the event before the turn. */
  readonly startedAfter: number
  follow(signal: AbortSignal): AsyncIterable<SessionItem>
}

/** UTF-16 units that are kept for new readers. */
const KEPT = 1_048_576
/**
 * UTF-16 units that are kept for slow readers. It exceeds the kernel's buffer of a connection, so a reader is only
 * dropped if it does not read, not because the server has not written to it yet.
 */
const KEPT_BEHIND = 4 * KEPT
/** How far the broadcast may run ahead of readers that keep up. */
const AHEAD = 262_144
/** UTF-16 units that one reader gets in one write. */
const AT_ONCE = 65_536

export function broadcasts(pump: Pump): Broadcasts {
  const running = new Map<string, Broadcast>()
  return {
    find: (name) => running.get(name),
    open(name, begin) {
      const known = running.get(name)
      if (known !== undefined) return known
      const made = broadcast(pump, begin(), () => {
        if (running.get(name) === made) running.delete(name)
      })
      running.set(name, made)
      return made
    },
  }
}

interface Entry {
  /** Undefined for the last entry after a failure of the session. */
  readonly item: SessionItem | undefined
  readonly seq: number
  readonly pieces: readonly Piece[]
  /** The units of all entries up to this one. */
  readonly end: number
}

interface Slice {
  readonly from: number
  readonly to: number
  /** Where the entries ended when the slice was made. */
  readonly head: number
  readonly pieces: readonly Piece[]
  readonly text: string
  /** The id of the last piece. */
  readonly id: number
}

const textOf = (pieces: readonly Piece[]): string => pieces.map((it) => it.text).join('')

const itemsOf = (entries: readonly Entry[]): SessionItem[] =>
  entries.flatMap((it) => (it.item === undefined ? [] : [it.item]))

interface Reader {
  /** The index of the next entry, counted from the first entry of the turn. */
  next: number
  id: number
  /** Whether pieces up to `id` may still come. */
  filters: boolean
  /** Pending until the last write has been consumed. */
  blocked: Promise<void> | undefined
  flush(): boolean
  lose(position: ReaderPosition): void
}

function broadcast(pump: Pump, { encoding, startedAfter, follow }: Beginning, onEnd: () => void): Broadcast {
  const stop = new AbortController()
  const readers = new Set<Reader>()
  let entries: Entry[] = []
  /** Dropped entries: their number, their units, and their progress in the current answer. */
  let dropped = 0
  let droppedUnits = 0
  let droppedProgress = noProgress
  /** Everything after this event is kept. A value that ends in .5 is between two events. */
  let keptFrom = startedAfter
  let seq = startedAfter
  let over: { readonly whole: boolean } | undefined
  let moved: (() => void) | undefined
  /** The number of units at which unneeded entries are dropped. */
  let trimsAt = 2 * KEPT
  /** The number of units that may be added before the readers' positions are checked. */
  let mayReach = AHEAD
  let shared: Slice | undefined

  const head = (): number => dropped + entries.length
  const unitsBefore = (index: number): number => (index <= dropped ? droppedUnits : entries[index - dropped - 1]!.end)
  /** The position of the slowest reader that is not blocked; if all are blocked, of the fastest. */
  function pace(): number {
    let first = 0
    let last = Number.POSITIVE_INFINITY
    for (const { next, blocked } of readers) {
      first = Math.max(first, next)
      if (blocked === undefined) last = Math.min(last, next)
    }
    return last === Number.POSITIVE_INFINITY ? first : last
  }

  function positionOfReader({ next, id }: Reader): ReaderPosition {
    const had = entries.slice(0, next - dropped)
    const last = had.at(-1)
    return { id, seq: last?.seq ?? Math.floor(keptFrom), progress: progressAfter(droppedProgress, itemsOf(had)) }
  }

  /** Drops entries that only readers far behind still need. */
  function trim(): void {
    const last = entries.at(-1)
    if (last === undefined || last.end <= trimsAt) return
    let behind = head()
    for (const it of readers) behind = Math.min(behind, it.next)
    const kept = Math.max(KEPT, Math.min(KEPT_BEHIND, last.end - unitsBefore(behind)))
    trimsAt = last.end + KEPT
    if (last.end - droppedUnits <= 2 * kept) return
    const count = entries.findIndex((it) => last.end - it.end <= kept)
    for (const it of readers) if (it.next < dropped + count) it.lose(positionOfReader(it))
    const gone = entries.slice(0, count)
    droppedProgress = progressAfter(droppedProgress, itemsOf(gone))
    const { item, seq: lastSeq, end } = gone.at(-1)!
    keptFrom = item !== undefined && isEvent(item) ? lastSeq : lastSeq + 0.5
    droppedUnits = end
    dropped += count
    entries = entries.slice(count)
  }

  function push(item: SessionItem | undefined, pieces: readonly Piece[]): void {
    const units = pieces.reduce((sum, it) => sum + it.text.length, 0)
    entries.push({ item, seq, pieces, end: unitsBefore(head()) + units })
  }

  function add(item: SessionItem, pieces: readonly Piece[]): void {
    const isStored = isEvent(item)
    if (isStored) seq = item.seq
    // Items without pieces cost nothing. Events are kept as marks where readers can join.
    if (pieces.length === 0 && !isStored) return
    push(item, pieces)
    trim()
    if (pieces.length > 0) for (const it of readers) pump.wake(it.flush)
  }

  function finish(whole: boolean): void {
    over = { whole }
    onEnd()
    for (const it of readers) pump.wake(it.flush)
  }

  /** Waits for the readers. Fragments that arrive meanwhile are dropped at their source. */
  async function backPressure(): Promise<void> {
    while (readers.size > 0) {
      mayReach = unitsBefore(pace()) + AHEAD
      if (unitsBefore(head()) <= mayReach) return
      await new Promise<void>((resolve) => {
        moved = resolve
      })
    }
  }

  async function run(): Promise<void> {
    try {
      const inParts = parts()
      for await (const item of follow(stop.signal))
        for (const part of inParts(item)) {
          const taken = encoding.take(part)
          add(part, taken instanceof Promise ? await taken : taken)
          if (encoding.ended) return finish(true)
          if (unitsBefore(head()) > mayReach) await backPressure()
        }
      finish(false)
    } catch (error) {
      push(undefined, encoding.fail(error))
      finish(encoding.ended)
    }
  }

  /** The next text of a reader. Readers at the same position share it. */
  function sliceFrom(from: number): Slice {
    if (shared?.from === from && shared.head === head()) return shared
    const limit = unitsBefore(from) + AT_ONCE
    let to = from + 1
    while (to < head() && entries[to - dropped]!.end <= limit) to += 1
    const part = entries.slice(from - dropped, to - dropped)
    const pieces = part.flatMap((it) => it.pieces)
    shared = { from, to, head: head(), pieces, text: textOf(pieces), id: pieces.at(-1)?.id ?? 0 }
    return shared
  }

  /** The text without the pieces that the reader already has. */
  function textFor(reader: Reader, { pieces, text }: Slice): string {
    if (!reader.filters) return text
    reader.filters = pieces.every((it) => it.id <= reader.id)
    return textOf(pieces.filter((it) => it.id > reader.id || it.always))
  }

  function progressed(): void {
    moved?.()
    moved = undefined
  }

  function leave(reader: Reader): void {
    readers.delete(reader)
    progressed()
    if (readers.size > 0 || over !== undefined) return
    onEnd()
    stop.abort()
  }

  /** Where a reader with everything up to `id` begins. Every reader gets the end. */
  function placeOf(id: number): number {
    let low = 0
    let high = entries.length
    while (low < high) {
      const middle = (low + high) >> 1
      const { pieces, seq: at } = entries[middle]!
      if ((pieces.at(-1)?.id ?? at) <= id) low = middle + 1
      else high = middle
    }
    return dropped + low
  }

  const self: Broadcast = {
    holds: (after) => after >= keptFrom,
    read({ id, wire, signal }) {
      const { promise, resolve } = Promise.withResolvers<ReadOutcome>()
      let lostAt: ReaderPosition | undefined
      let here = true
      const done = (outcome: ReadOutcome): void => {
        if (!here) return
        here = false
        signal.removeEventListener('abort', goes)
        wire.signal.removeEventListener('abort', goes)
        resolve(outcome)
        leave(reader)
      }
      const goes = (): void => done({ type: 'left', ...(lostAt ?? positionOfReader(reader)) })
      const reader: Reader = {
        next: placeOf(id),
        id,
        filters: true,
        blocked: undefined,
        lose(position) {
          lostAt = position
          leave(reader)
          // A reader that was dropped because it does not read must not get more data.
          const lost = (): void => done({ type: 'lost', ...position })
          if (reader.blocked === undefined) lost()
          else void reader.blocked.then(lost)
        },
        flush() {
          if (!here || reader.blocked !== undefined || lostAt !== undefined) return false
          if (reader.next < head()) {
            const slice = sliceFrom(reader.next)
            const text = textFor(reader, slice)
            reader.next = slice.to
            reader.id = Math.max(reader.id, slice.id)
            const written = text === '' ? undefined : wire.write(text)
            reader.blocked = written?.then(() => {
              reader.blocked = undefined
              pump.wake(reader.flush)
            })
            progressed()
            if (written !== undefined) return false
          }
          if (reader.next < head()) return true
          if (over !== undefined) done({ type: 'ended', ...over })
          return false
        },
      }
      signal.addEventListener('abort', goes)
      wire.signal.addEventListener('abort', goes)
      readers.add(reader)
      progressed()
      if (signal.aborted || wire.signal.aborted) goes()
      else pump.wake(reader.flush)
      return promise
    },
  }
  void run()
  return self
}
