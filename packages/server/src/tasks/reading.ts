// One reader of one task: frames from where it left off to the end, over whatever carries them.
import { type Event, isEnd, isEvent, turnEvents } from '@oxbow/core'
import type { Broadcasts, Encoding, Piece, Wire } from '../stream/broadcast.ts'
import { parts } from '../stream/progress.ts'
import { type Moment, type Moments, moments } from './moments.ts'
import type { TaskPlace } from './place.ts'
import { afterBlocks, atEvent, isWithinAnswer, positionOf } from './positions.ts'

export interface TaskFrame {
  readonly id: number
  readonly event: string
  readonly data: object
}

/** What a moment looks like in a protocol. The ids of its frames begin with the moment's own and grow. */
export type Encode = (moment: Moment, so: Moments) => readonly TaskFrame[]

export const eventStream = ({ id, event, data }: TaskFrame): string =>
  `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`

export interface TaskReading {
  /** The id of the last frame that the reader has; 0 for none. */
  readonly after: number
  readonly encode: Encode
  readonly format: (frame: TaskFrame) => string
  /** Names what `encode` and `format` make: readers of one form share it. */
  readonly form: string
  readonly wire: Wire
  readonly signal: AbortSignal
  /** Logs an error that the readers are not told. */
  readonly report: (error: unknown) => void
}

/**
 * Resolves with whether the task has come to its end; else the reader has left, `signal` has fired, or the session cannot be
 * followed any more.
 *
 * A reader that is slow loses nothing: it reads events again from the journal, and what was dropped of an answer comes with
 * its end.
 */
export async function readTask(broadcasts: Broadcasts, place: TaskPlace, reading: TaskReading): Promise<boolean> {
  const { session, turnId, startedAfter } = place
  const { encode, format, form, wire, signal, report } = reading
  const name = JSON.stringify([...Object.values(session.key), turnId, form])
  const begin = () => ({
    startedAfter,
    follow: (stop: AbortSignal) => session.follow({ after: startedAfter, signal: stop }),
    encoding: encodingOf(moments(turnId, 0), encode, format, report),
  })
  let { after } = reading
  const { seq } = positionOf(after)
  let broadcast = isWithinAnswer(after) ? undefined : broadcasts.open(name, begin)
  if (broadcast?.holds(Math.max(seq, startedAfter)) === false) broadcast = undefined
  for (;;) {
    if (broadcast !== undefined) {
      const outcome = await broadcast.read({ id: after, wire, signal })
      if (outcome.type !== 'lost') return outcome.type === 'ended' && outcome.whole
      after = outcome.id
    }
    const alone = await readAlone(place, { ...reading, after }, (at) => broadcasts.find(name)?.holds(at) === true)
    if (alone.joinsAt === undefined) return alone.ended
    after = alone.after
    broadcast = broadcasts.find(name)
  }
}

function encodingOf(
  fold: Moments,
  encode: Encode,
  format: (frame: TaskFrame) => string,
  report: (error: unknown) => void,
): Encoding {
  return {
    take: (item) =>
      fold
        .take(item)
        .flatMap((moment) =>
          encode(moment, fold).map((frame): Piece => ({ id: frame.id, text: format(frame), always: untold(moment) })),
        ),
    get ended() {
      return fold.ended
    },
    fail(error) {
      report(error)
      return []
    },
  }
}

interface ReadAlone {
  readonly ended: boolean
  /** The id of the last frame that was written. */
  readonly after: number
  /** After which event the reader can join the others. */
  readonly joinsAt?: number
}

/** Behind everything that follows from the event itself, and before what the others get after it. */
const endOf = ({ type, seq }: Event): number => (type === 'model.finished' ? afterBlocks(seq) : atEvent(seq))

/** For readers from the midst of an answer, and for those that have fallen behind. */
async function readAlone(
  { session, turnId, startedAfter }: TaskPlace,
  { after, encode, format, wire, signal }: TaskReading,
  canJoin: (seq: number) => boolean,
): Promise<ReadAlone> {
  const fold = moments(turnId, after)
  let last = after
  const inParts = parts()
  const left = AbortSignal.any([wire.signal, signal])
  for await (const item of session.follow({ after: startedAfter, signal: left })) {
    for (const part of inParts(item)) {
      let text = ''
      for (const moment of fold.take(part))
        for (const frame of encode(moment, fold))
          if (frame.id > after || untold(moment)) {
            text += format(frame)
            last = Math.max(last, frame.id)
          }
      const written = text === '' ? undefined : wire.write(text)
      if (written !== undefined) await written
      if (left.aborted) return { ended: false, after: last }
    }
    if (fold.ended) return { ended: true, after: last }
    if (isEvent(item) && item.seq > positionOf(after).seq && fold.isBetweenAnswers && canJoin(item.seq))
      return { ended: false, after: Math.max(last, endOf(item)), joinsAt: item.seq }
  }
  return { ended: false, after: last }
}

/** The end is told to everybody, or their stream would have none; and what is never stored has no number of its own. */
const untold = ({ type, source }: Moment): boolean => type === 'ended' || (type === 'other' && !isEvent(source))

/** Where to begin so that only what comes from now on is told. */
export async function fromNowOn({ session, turnId, state }: TaskPlace): Promise<number> {
  const fold = moments(turnId, 0)
  let at = 0
  for await (const event of turnEvents((after) => session.events(after), state, turnId, state.seq))
    for (const moment of fold.take(event)) at = Math.max(at, moment.at)
  return at
}

/** Waits until the task has ended, or a pause begins for which `enough` is true and which nobody has ended yet. */
export async function untilSettled(
  { session, turnId, startedAfter }: TaskPlace,
  enough: (reason: string) => boolean,
  signal: AbortSignal,
): Promise<void> {
  for await (const item of session.follow({ after: startedAfter, signal })) {
    if (!isEvent(item) || item.type === 'session.opened' || item.turnId !== turnId) continue
    if (isEnd(item)) return
    if (item.type !== 'turn.paused' || !enough(item.reason)) continue
    const { turn } = await session.state()
    if (turn?.paused?.seq === item.seq) return
  }
}
