// Streams one turn of a session to one reader, from anywhere in it to its end.
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Event, Session } from '@oxbow/core'
import { type RunEncoder, runEncoder } from '../ag-ui/encoder.ts'
import { failureOf, failureOfError } from '../failures.ts'
import type { AppContext } from '../http/route.ts'
import { streamHeaders } from '../http/security.ts'
import type { Caller } from '../principal.ts'
import type { Audience } from './audience.ts'
import type { Reading, Rights } from './rights.ts'
import type { Sse, SseStreams } from './sse.ts'

export interface StreamDeps {
  readonly streams: SseStreams
  readonly audience: Audience
  readonly rights: Rights
  readonly onRepair: () => void
  /** The schema of a tool's arguments. */
  readonly schemaOf: (agent: string, tool: string) => object | undefined
  /** Logs an error that the reader is not told, and returns its reference. */
  readonly report: (error: unknown, about: { readonly turnId: string }) => string
}

/** Where the turn begins, and from where on the reader wants it. */
export interface Position {
  readonly startedAfter: number
  /** Undefined: from its start, for a reader who is new. */
  readonly after: number | undefined
  /** The turn had been accepted before. */
  readonly again: boolean
  /** Other turns run before it. */
  readonly queued: boolean
}

export interface Located {
  readonly caller: Caller
  readonly session: Session
  readonly turnId: string
  readonly position: Position
  /** What the reader should know about the request itself. */
  readonly warnings?: readonly string[]
}

export async function streamTurn(
  deps: StreamDeps,
  c: AppContext,
  run: { readonly threadId: string; readonly runId: string; readonly known?: ReadonlySet<string> },
  /** Called when the stream has begun: what fails in it ends the stream with RUN_ERROR. */
  locate: () => Promise<Located>,
): Promise<Response> {
  const sse = deps.streams.open(c.env.outgoing, streamHeaders(c))
  let turnId = run.runId
  const report = (error: unknown): string => deps.report(error, { turnId })
  const encoder = runEncoder({ ...run, onRepair: deps.onRepair, report })
  let leave: ((over: boolean) => void) | undefined
  let reading: Reading | undefined
  sse.write(encoder.start())
  try {
    const located = await locate()
    const { session, position } = located
    turnId = located.turnId
    encoder.follows(turnId)
    const as = c.req.method !== 'POST' ? 'watcher' : position.again ? 'returner' : 'starter'
    leave = deps.audience.enter(session, turnId, as)
    reading = deps.rights.watch(located.caller)
    const from = await rewind(session, encoder, turnId, position)
    if (position.again) sse.write(encoder.resumed(from))
    if (position.queued) sse.write(encoder.hint('queue', await whatIsBefore(session)))
    for (const it of located.warnings ?? []) sse.write(encoder.hint('resume', it))
    await follow(deps, session, encoder, sse, turnId, from.after, reading.withdrawn)
  } catch (error) {
    sse.write(encoder.fail(failureOfError(error, report)))
  }
  reading?.done()
  // A turn whose reader was sent away has lost its reader, though the stream had its end.
  const over = encoder.ended && reading?.withdrawn.aborted !== true
  if (!encoder.ended && reading?.withdrawn.aborted) sse.write(encoder.fail(failureOf('access_withdrawn')))
  sse.end()
  leave?.(over)
  return RESPONSE_ALREADY_SENT
}

async function whatIsBefore(session: Session): Promise<string> {
  const { turn } = await session.state()
  return turn?.paused === undefined
    ? 'Another turn of this session runs first.'
    : `Turn ${turn.turnId} of this session comes first, and it waits (${turn.paused.reason}).`
}

/** Tells the encoder what the reader has had, and finds where to go on. */
async function rewind(
  session: Session,
  encoder: RunEncoder,
  turnId: string,
  { startedAfter, after, again }: Position,
): Promise<{ after: number; repeats: boolean }> {
  if (!again || after === undefined || after <= startedAfter)
    return { after: startedAfter, repeats: again && after === undefined }
  const seen: Event[] = []
  let at = startedAfter
  while (at < after) {
    const events = (await session.events(at)).filter((it) => it.seq <= after)
    if (events.length === 0) break
    at = events.at(-1)!.seq
    for (const it of events) if (it.type !== 'session.opened' && it.turnId === turnId) seen.push(it)
  }
  // An end or a pause is told again, or the stream would have none.
  const last = seen.at(-1)
  if (last !== undefined && /^turn\.(finished|failed|cancelled|paused)$/.test(last.type)) {
    seen.pop()
    at = last.seq - 1
  }
  for (const it of seen) encoder.seen(it)
  return { after: at, repeats: encoder.inStep }
}

async function follow(
  { schemaOf }: StreamDeps,
  session: Session,
  encoder: RunEncoder,
  sse: Sse,
  turnId: string,
  after: number,
  withdrawn: AbortSignal,
): Promise<void> {
  for await (const item of session.follow({ after, signal: AbortSignal.any([sse.signal, withdrawn]) })) {
    const written = sse.write(encoder.encode(item))
    if (encoder.ended) return
    if (item.type === 'turn.paused' && item.turnId === turnId) {
      // A pause of the past has been ended by what follows it.
      const { turn, agent } = await session.state()
      if (turn?.paused?.seq === item.seq) {
        sse.write(encoder.pause(session.key, (tool) => schemaOf(agent, tool)))
        return
      }
    }
    if (written !== undefined) await written
  }
}
