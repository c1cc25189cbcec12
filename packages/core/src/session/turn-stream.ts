// The stream and the result of one turn.
import { onAbort } from '../checks/abort.ts'
import { isStandardSchema } from '../checks/json-schema.ts'
import type { EngineInternals } from '../engine-internals.ts'
import { errorFrom, OxbowError } from '../errors.ts'
import { type Event, isEvent, type SessionItem } from '../events/types.ts'
import type { Follower } from '../journal/follower.ts'
import type { SessionKey } from '../ports.ts'
import { isEnd, type TurnResult, turnResult } from '../state/turn-result.ts'
import type { RunOptions } from './input.ts'
import { textStream } from './text-stream.ts'

export interface Submitted {
  /** The turn that will answer: for a steering input, the one that runs. */
  readonly turnId: string
  readonly accepted: 'started' | 'queued' | 'steered' | 'duplicate'
  /** The turn's events follow this sequence number. */
  readonly after: number
}

export interface TurnStream extends AsyncIterable<SessionItem> {
  readonly session: SessionKey
  readonly turnId: string
  /** Resolves like `run`. */
  readonly result: Promise<TurnResult>
  /** Only the text of the answers, each part once. Rejects if the turn cannot be read; how it ended is in `result`. */
  readonly textStream: AsyncIterable<string>
}

/** The position of a turn in the journal. */
export type Place = Pick<Submitted, 'turnId' | 'after'> & Partial<Pick<Submitted, 'accepted'>>

/** Reads turns of a session. `interrupt` stops one, for callers that abort. */
export function turnReader(
  engine: EngineInternals,
  key: SessionKey,
  interrupt: (options: { turnId: string; reason: string }) => unknown,
) {
  /** The items of one turn, from its start to its end or an open pause, other than a sleep if `throughSleep`. */
  function itemsOf(
    place: Promise<Place>,
    fragments: boolean,
    throughSleep = false,
  ): AsyncIterableIterator<SessionItem> {
    let reader: Follower | undefined
    let opening: Promise<Follower> | undefined
    const open = async (): Promise<Follower> => {
      const { turnId, after } = await place
      reader = await engine.using(key, (log) =>
        log.follow(after, {
          fragments,
          turnId,
          isLast: (event) =>
            isEnd(event) ||
            (event.type === 'turn.paused' &&
              log.state.turn?.paused?.seq === event.seq &&
              !(throughSleep && event.reason === 'sleep')),
        }),
      )
      return reader
    }
    return {
      [Symbol.asyncIterator]() {
        return this
      },
      // The follower's own promise, because a generator around it would cost a turn of the microtask queue for each
      // fragment.
      next() {
        if (reader !== undefined) return reader.next()
        opening ??= open()
        return opening.then((it) => it.next())
      },
      async return() {
        await opening?.then(
          (it) => it.return?.(),
          () => {},
        )
        return { done: true, value: undefined }
      },
    }
  }

  async function resultOf(submitting: Promise<Place>, options: RunOptions, throughSleep = false): Promise<TurnResult> {
    const { turnId, accepted } = await submitting
    // A user who only steered another user's turn may leave, but not stop it.
    const signal = accepted === 'steered' ? undefined : options.signal
    const stop = onAbort(signal, () => interrupt({ turnId, reason: 'aborted by the caller' }))
    const events: Event[] = []
    try {
      for await (const item of itemsOf(submitting, false, throughSleep)) if (isEvent(item)) events.push(item)
    } finally {
      stop()
    }
    const result = turnResult(turnId, events)
    if (result.status === 'failed') {
      const { reference } = result.error!
      throw errorFrom(result.error!, { turnId, reference })
    }
    const { output } = options
    // A turn that paused, was cancelled or ended by `stopWhen` has none.
    if (result.output === undefined || output === undefined || !isStandardSchema(output)) return result
    // The stored output is JSON; the caller's own schema may turn it into something richer.
    const parsed = await output['~standard'].validate(result.output)
    if (parsed.issues === undefined) return { ...result, output: parsed.value }
    const why = parsed.issues.map((it) => it.message).join('; ')
    throw new OxbowError('output_invalid', `The answer fits the JSON Schema, but not the schema's own checks: ${why}`)
  }

  function streamOf(turnId: string, place: Promise<Place>, options: RunOptions): TurnStream {
    const result = resultOf(place, options)
    // A caller that only reads the items learns of the failure there.
    result.catch(() => {})
    return {
      session: key,
      turnId,
      result,
      textStream: { [Symbol.asyncIterator]: () => textStream(itemsOf(place, true)) },
      [Symbol.asyncIterator]: () => itemsOf(place, true),
    }
  }

  return { resultOf, streamOf }
}
