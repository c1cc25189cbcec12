// POST /api/chat/stream: AG-UI in, AG-UI out.
import type { Engine, Session } from '@oxbow/core'
import { z } from 'zod'
import { type AppContext, type Route, route } from '../http/route.ts'
import { errorAnswer, given, userQuery } from '../http/schemas.ts'
import type { TurnSlots } from '../identity/turn-slots.ts'
import { type Caller, callerOf, type Named } from '../principal.ts'
import { lastEventId } from '../stream/last-event-id.ts'
import { type StreamDeps, streamTurn } from '../stream/turn-stream.ts'
import { runAgentInput } from './input.ts'

export function chatStreamRoute(
  engine: Engine,
  deps: StreamDeps,
  limits: { maxMessageLength: number },
  slots: TurnSlots,
): Route {
  return route({
    method: 'post',
    path: '/api/chat/stream',
    id: 'chatStream',
    summary: 'Runs a turn and streams it as AG-UI events. The same runId again takes the stream up again.',
    headers: z.object({ 'Last-Event-ID': z.string().optional().describe('The last `id:` that was received.') }),
    query: userQuery.extend({ after: z.string().optional().describe('The same as Last-Event-ID.') }),
    body: runAgentInput(limits.maxMessageLength),
    answers: {
      200: { description: 'AG-UI events, as server-sent events.', contentType: 'text/event-stream' },
      415: { description: 'The content type is not application/json.', schema: errorAnswer },
    },
    async handle({ query, body: { threadId, runId, turnId, text, named } }, c) {
      const after = lastEventId(c, query.after)
      const { owner, principal } = runnerOf(c, query, named)
      const key = { ...owner, session: threadId }
      const release = slots.take(principal, key, turnId)
      let session: Session | undefined
      const answer = await streamTurn(deps, c, { threadId, runId, turnId }, async () => {
        session = engine.session(key)
        const submitted = await session.submit(text, { turnId, principal, surface: 'ag-ui' })
        const { accepted, after: startedAfter } = submitted
        return {
          session,
          position: { startedAfter, after, again: accepted === 'duplicate', queued: accepted === 'queued' },
        }
      })
      // The turn may go on without its reader.
      if (release !== undefined) void ended(session, turnId).finally(release)
      return answer
    },
  })
}

/** The protocol has no user: without identity it is the default one. With identity whoever is named must be the caller. */
function runnerOf(c: AppContext, query: Named, body: Named): Caller {
  if (c.get('caller') === 'anybody') return callerOf(c)
  const byBody = callerOf(c, body)
  return given(query.userId) === undefined && given(query.tenant) === undefined ? byBody : callerOf(c, query)
}

const ended = async (session: Session | undefined, turnId: string): Promise<void> => {
  await session?.wait(turnId).catch(() => {})
}
