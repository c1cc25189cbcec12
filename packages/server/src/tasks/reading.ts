// One reader of one task: frames from where it left off to the end, over whatever carries them.
import { isEnd, isEvent, turnEvents } from '@oxbow/core'
import { type Moment, type Moments, moments } from './moments.ts'
import type { Place } from './place.ts'

export interface Frame {
  readonly id: number
  readonly event: string
  readonly data: object
}

/** What a moment looks like in a protocol. The ids of its frames begin with the moment's own and grow. */
export type Encode = (moment: Moment, so: Moments) => readonly Frame[]

export interface Wire {
  /** Resolves at once while the reader keeps up, else when it has read on or left. */
  write(text: string): Promise<void> | undefined
  /** Fires when the reader has left. */
  readonly signal: AbortSignal
}

export const eventStream = ({ id, event, data }: Frame): string =>
  `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`

/**
 * Resolves with whether the task has come to its end; else the reader has left or `signal` has fired.
 *
 * A reader that is slow loses nothing: the session's follower drops fragments and reads events again from the journal, and
 * what was dropped of an answer comes with its end.
 */
export async function readTask(
  { session, turnId, startedAfter }: Place,
  options: {
    /** The id of the last frame that the reader has; 0 for none. */
    readonly after: number
    readonly encode: Encode
    readonly format: (frame: Frame) => string
    readonly wire: Wire
    readonly signal: AbortSignal
  },
): Promise<boolean> {
  const { after, encode, format, wire, signal } = options
  const fold = moments(turnId, after)
  for await (const item of session.follow({ after: startedAfter, signal: AbortSignal.any([wire.signal, signal]) })) {
    let text = ''
    for (const moment of fold.take(item))
      for (const frame of encode(moment, fold)) if (frame.id > after || untold(moment)) text += format(frame)
    if (text !== '') {
      const written = wire.write(text)
      if (written !== undefined) await written
    }
    if (fold.ended) return true
  }
  return false
}

/** The end is told to everybody, or their stream would have none; and what is never stored has no number of its own. */
const untold = ({ type, source }: Moment): boolean => type === 'ended' || (type === 'other' && !isEvent(source))

/** Where to begin so that only what comes from now on is told. */
export async function fromNowOn({ session, turnId, state }: Place): Promise<number> {
  const fold = moments(turnId, 0)
  let at = 0
  for await (const event of turnEvents((after) => session.events(after), state, turnId, state.seq))
    for (const moment of fold.take(event)) at = Math.max(at, moment.at)
  return at
}

/** Waits until the task has ended, or a pause begins for which `enough` is true and which nobody has ended yet. */
export async function untilSettled(
  { session, turnId, startedAfter }: Place,
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
