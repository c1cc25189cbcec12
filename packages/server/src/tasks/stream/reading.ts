// One reader of one task: frames from its position to the end, over any transport.
import { type Event, isEnd, isEvent, turnEvents } from '@oxbow/core'
import type { Broadcasts, Encoding, Piece, Wire } from '../../stream/broadcast.ts'
import { parts } from '../../stream/progress.ts'
import type { TaskPlace } from '../place.ts'
import { type Moment, type Moments, moments } from './moments.ts'
import { afterBlocks, atEvent, isWithinAnswer, positionOf } from './positions.ts'

export interface TaskFrame {
  readonly id: number
  readonly event: string
  readonly data: object
}

/** The frames of a moment in a protocol. Their ids start with the moment's number and increase. */
export type Encode = (moment: Moment, fold: Moments) => readonly TaskFrame[]

export const eventStream = ({ id, event, data }: TaskFrame): string =>
  `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`

export interface TaskReading {
  /** The id of the reader's last frame; 0 for none. */
  readonly after: number
  readonly encode: Encode
  readonly format: (frame: TaskFrame) => string
  /** Names the output of `encode` and `format`: readers of one form share it. */
  readonly form: string
  readonly wire: Wire
  readonly signal: AbortSignal
  /** Logs an error that readers must not see. */
  readonly report: (error: unknown) => void
}

/**
 * Resolves with true when the task has ended; false when the reader has left, `signal` has fired, or the session cannot
 * be followed any more.
 *
 * A slow reader loses nothing: it reads events from the journal, and dropped fragments of an answer come with its end.
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
          encode(moment, fold).map(
            (frame): Piece => ({ id: frame.id, text: format(frame), always: unnumbered(moment) }),
          ),
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
  /** The id of the last written frame. */
  readonly after: number
  /** The event after which the reader can join the others. */
  readonly joinsAt?: number
}

/** After everything that follows from the event itself, and before the next moment of the other readers. */
const endOf = ({ type, seq }: Event): number => (type === 'model.finished' ? afterBlocks(seq) : atEvent(seq))

/** For readers that begin within an answer, and for readers that have fallen behind. */
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
          if (frame.id > after || unnumbered(moment)) {
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

/**
 * The end is sent to every reader, because a stream needs one; moments that are never stored have no number of their
 * own.
 */
const unnumbered = ({ type, source }: Moment): boolean => type === 'ended' || (type === 'other' && !isEvent(source))

/** The position from which only new moments are sent. */
export async function fromNowOn({ session, turnId, state }: TaskPlace): Promise<number> {
  const fold = moments(turnId, 0)
  let at = 0
  for await (const event of turnEvents((after) => session.events(after), state, turnId, state.seq))
    for (const moment of fold.take(event)) at = Math.max(at, moment.at)
  return at
}

/** Waits until the task has ended, or is in a current pause for which `enough` is true. */
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
