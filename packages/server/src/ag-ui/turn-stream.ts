// Streams one turn of a session to one reader, from any position to its end.
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type Event, isEvent, type Principal, type Session } from '@oxbow/core'
import { failureOf, failureOfError } from '../failures.ts'
import type { AppContext } from '../http/route.ts'
import { streamHeaders } from '../http/security.ts'
import type { StreamSlots } from '../identity/limits/stream-slots.ts'
import type { Caller } from '../principal.ts'
import type { Audience } from '../stream/audience.ts'
import type { Broadcasts, Encoding, ReaderPosition } from '../stream/broadcast.ts'
import { endsAnswer, parts } from '../stream/progress.ts'
import type { Rights, WatchedReading } from '../stream/rights.ts'
import type { Sse, SseStreams } from '../stream/sse.ts'
import { type RunEncoder, runEncoder } from './encoder/encoder.ts'
import type { Strict } from './encoder/frames.ts'

export interface StreamDeps {
  readonly streams: SseStreams
  readonly streamSlots: StreamSlots
  readonly broadcasts: Broadcasts
  readonly audience: Audience
  readonly rights: Rights
  readonly onRepair: () => void
  /** The schema of a tool's arguments. */
  readonly schemaOf: (agent: string, tool: string) => object | undefined
  /** Logs an error that the reader must not see, and returns its reference. */
  readonly report: (error: unknown, about: { readonly turnId: string }) => string
}

/** Where the turn begins, and where its reader begins. */
export interface TurnPosition {
  readonly startedAfter: number
  /** Undefined: from the start of the turn, for a new reader. */
  readonly after: number | undefined
  /** The turn had already been accepted. */
  readonly repeated: boolean
  /** Other turns run before this one. */
  readonly queued: boolean
}

export interface Located {
  readonly caller: Caller
  readonly session: Session
  readonly turnId: string
  readonly position: TurnPosition
  /** Warnings about the request, for its reader. */
  readonly warnings?: readonly string[]
}

export interface Run {
  readonly threadId: string
  readonly runId: string
  /** Calls, by their wire ids, whose results the reader has from an earlier run. */
  readonly known?: ReadonlySet<string>
  /** No event ids and no comments, for clients that need the exact form of an older service. */
  readonly strict?: Strict | undefined
}

export async function streamTurn(
  deps: StreamDeps,
  c: AppContext,
  run: Run,
  principal: Principal,
  /** Called when the stream has begun: errors in it end the stream with RUN_ERROR. */
  locate: () => Promise<Located>,
): Promise<Response> {
  c.env.outgoing.once('close', deps.streamSlots.take(principal))
  const sse = deps.streams.open(c.env.outgoing, streamHeaders(c), { comments: run.strict === undefined })
  let turnId = run.runId
  const report = (error: unknown): string => deps.report(error, { turnId })
  const encoder = runEncoder({ ...run, onRepair: deps.onRepair, report })
  let leave: ((over: boolean) => void) | undefined
  let reading: WatchedReading | undefined
  let ended = false
  sse.write(encoder.start())
  try {
    const located = await locate()
    const { session, position } = located
    turnId = located.turnId
    encoder.follows(turnId)
    const as = c.req.method !== 'POST' ? 'watcher' : position.repeated ? 'reconnected' : 'starter'
    leave = deps.audience.enter(session, turnId, as)
    reading = deps.rights.watch(located.caller)
    const from = await rewind(session, turnId, position)
    if (position.repeated) sse.write(encoder.resumed(from))
    if (position.queued) sse.write(encoder.hint('queue', await whatIsBefore(session)))
    for (const it of located.warnings ?? []) sse.write(encoder.hint('resume', it))
    const turn = { session, turnId, startedAfter: position.startedAfter }
    ended = await follow({ deps, run, turn, encoder, sse, report, withdrawn: reading.withdrawn }, from.after)
  } catch (error) {
    if (!encoder.ended) sse.write(encoder.fail(failureOfError(error, report)))
    ended = true
  }
  reading?.done()
  sse.end()
  // A turn loses its reader when access is withdrawn, even though the stream got an end.
  leave?.(ended && reading?.withdrawn.aborted !== true)
  return RESPONSE_ALREADY_SENT
}

async function whatIsBefore(session: Session): Promise<string> {
  const { turn } = await session.state()
  return turn?.paused === undefined
    ? 'Another turn of this session runs first.'
    : `Turn ${turn.turnId} of this session comes first, and is waiting (${turn.paused.reason}).`
}

const PAGE = 500
const REPEATED = /^turn\.(finished|failed|cancelled|paused)$/
const OF_STEPS = /^(step\.started|model\.finished|turn\.(finished|failed|cancelled))$/

/** The event after which the reader continues, and whether text is repeated that it may have seen. */
async function rewind(
  session: Session,
  turnId: string,
  { startedAfter, after, repeated }: TurnPosition,
): Promise<{ after: number; repeats: boolean }> {
  if (!repeated || after === undefined || after <= startedAfter)
    return { after: startedAfter, repeats: repeated && after === undefined }
  const ofTurn = (it: Event): boolean => it.seq <= after && it.type !== 'session.opened' && it.turnId === turnId
  let last: Event | undefined
  for (let end = after; end > startedAfter; end -= PAGE) {
    const page = (await session.events(Math.max(startedAfter, end - PAGE))).filter((it) => it.seq <= end && ofTurn(it))
    last ??= page.at(-1)
    // Repeats an end or a pause; otherwise the stream would have none.
    if (last !== undefined && REPEATED.test(last.type)) return { after: last.seq - 1, repeats: false }
    const step = page.findLast((it) => OF_STEPS.test(it.type))
    if (step !== undefined) return { after: last?.seq ?? after, repeats: step.type === 'step.started' }
  }
  return { after: last?.seq ?? after, repeats: false }
}

interface Following {
  readonly deps: StreamDeps
  readonly run: Run
  readonly turn: { readonly session: Session; readonly turnId: string; readonly startedAfter: number }
  /** For this reader only: encodes what the other readers do not get. */
  readonly encoder: RunEncoder
  readonly sse: Sse
  readonly report: (error: unknown) => string
  readonly withdrawn: AbortSignal
}

/** Resolves with whether the reader has the end of the run. */
async function follow(reader: Following, after: number): Promise<boolean> {
  const { deps, run, turn, encoder, sse, report, withdrawn } = reader
  const { session, turnId, startedAfter } = turn
  const signal = AbortSignal.any([sse.signal, withdrawn])
  const name = JSON.stringify([...Object.values(session.key), turnId, 'ag-ui', run.threadId, run.runId, sharing(run)])
  let broadcast = deps.broadcasts.open(name, () => ({
    startedAfter,
    follow: (stop) => session.follow({ after: startedAfter, signal: stop }),
    encoding: encodingOf(deps, run, turn, report),
  }))
  let position: ReaderPosition = { id: after, seq: after, progress: new Map() }
  for (;;) {
    if (broadcast.holds(position.seq)) {
      const outcome = await broadcast.read({ id: position.id, wire: sse, signal })
      if (outcome.type === 'ended') return outcome.whole
      position = outcome
      if (outcome.type === 'left' && !withdrawn.aborted) return false
    }
    await catchUp(turn, encoder, position)
    const joinsAt = withdrawn.aborted ? undefined : await followAlone(reader, position, signal, name)
    if (joinsAt === undefined) break
    position = { id: joinsAt, seq: joinsAt, progress: new Map() }
    broadcast = deps.broadcasts.find(name)!
  }
  if (!encoder.ended && withdrawn.aborted) sse.write(encoder.fail(failureOf('access_withdrawn')))
  return encoder.ended
}

let unshared = 0
/** A reader with results of its own, or in strict form, does not share its encoding. */
const sharing = ({ known, strict }: Run): number =>
  strict === undefined && (known === undefined || known.size === 0) ? 0 : ++unshared

/** Replays to the encoder what its reader already has. */
async function catchUp(
  { session, turnId, startedAfter }: Following['turn'],
  encoder: RunEncoder,
  { seq, progress }: ReaderPosition,
): Promise<void> {
  for (let at = Math.max(startedAfter, encoder.reached); at < seq; ) {
    const page = (await session.events(at)).filter((it) => it.seq <= seq)
    if (page.length === 0) break
    at = page.at(-1)!.seq
    for (const it of page) if (it.type !== 'session.opened' && it.turnId === turnId) encoder.seen(it)
  }
  encoder.had(progress)
}

/** Serves a reader that cannot keep up with the others. Resolves with the event after which it can join them. */
async function followAlone(
  { deps, turn, encoder, sse }: Following,
  { seq: after, progress }: ReaderPosition,
  signal: AbortSignal,
  name: string,
): Promise<number | undefined> {
  const inParts = parts(progress)
  for await (const item of turn.session.follow({ after, signal })) {
    for (const part of inParts(item)) {
      const text = encoder.encode(part)
      const written = sse.write(text + (await ifPaused(deps, turn, encoder, part)))
      if (encoder.ended) return undefined
      if (written !== undefined) await written
      if (signal.aborted) return undefined
    }
    const joins = isEvent(item) && endsAnswer(item) && deps.broadcasts.find(name)?.holds(item.seq) === true
    if (joins) return item.seq
  }
  return undefined
}

/** For all readers: stored events have their sequence number as id, and items between two events add a half. */
function encodingOf(deps: StreamDeps, run: Run, turn: Following['turn'], report: (error: unknown) => string): Encoding {
  const encoder = runEncoder({ ...run, onRepair: deps.onRepair, report })
  encoder.follows(turn.turnId)
  let seq = turn.startedAfter
  const piecesOf = (text: string, id: number) => (text === '' ? [] : [{ id, text, always: encoder.ended }])
  return {
    take(item) {
      if (isEvent(item)) seq = item.seq
      const text = encoder.encode(item)
      if (item.type !== 'turn.paused' || item.turnId !== turn.turnId)
        return piecesOf(text, isEvent(item) ? seq : seq + 0.5)
      return ifPaused(deps, turn, encoder, item).then((end) => piecesOf(text + end, seq))
    },
    get ended() {
      return encoder.ended
    },
    fail: (error) => piecesOf(encoder.fail(failureOfError(error, report)), seq + 0.5),
  }
}

/** The end of a run whose turn is paused now. A past pause ended with the event that followed it. */
async function ifPaused(
  { schemaOf }: StreamDeps,
  { session, turnId }: Following['turn'],
  encoder: RunEncoder,
  item: { readonly type: string },
): Promise<string> {
  if (encoder.ended || item.type !== 'turn.paused') return ''
  const { seq, turnId: paused } = item as Event<'turn.paused'>
  if (paused !== turnId) return ''
  const { turn, agent } = await session.state()
  return turn?.paused?.seq === seq ? encoder.pause(session.key, (tool) => schemaOf(agent, tool)) : ''
}
