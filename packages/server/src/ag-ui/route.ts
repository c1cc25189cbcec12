// POST /api/chat/stream: AG-UI in, AG-UI out.
import type { Engine } from '@oxbow/core'
import { z } from 'zod'
import { type Route, route } from '../http/route.ts'
import { errorAnswer } from '../http/schemas.ts'
import { principalOf } from '../principal.ts'
import { lastEventId } from '../stream/last-event-id.ts'
import { type StreamDeps, streamTurn } from '../stream/turn-stream.ts'
import { runAgentInput } from './input.ts'

export function chatStreamRoute(engine: Engine, deps: StreamDeps, limits: { maxMessageLength: number }): Route {
  return route({
    method: 'post',
    path: '/api/chat/stream',
    id: 'chatStream',
    summary: 'Runs a turn and streams it as AG-UI events. The same runId again takes the stream up again.',
    headers: z.object({ 'Last-Event-ID': z.string().optional().describe('The last `id:` that was received.') }),
    query: z.object({ after: z.string().optional().describe('The same as Last-Event-ID.') }),
    body: runAgentInput(limits.maxMessageLength),
    answers: {
      200: { description: 'AG-UI events, as server-sent events.', contentType: 'text/event-stream' },
      415: { description: 'The content type is not application/json.', schema: errorAnswer },
    },
    handle({ query, body: { threadId, runId, turnId, text } }, c) {
      const after = lastEventId(c, query.after)
      const principal = principalOf(undefined)
      return streamTurn(deps, c, { threadId, runId, turnId }, async () => {
        const session = engine.session({ tenant: principal.tenant, user: principal.user, session: threadId })
        const submitted = await session.submit(text, { turnId, principal, surface: 'ag-ui' })
        const { accepted, after: startedAfter } = submitted
        return {
          session,
          position: { startedAfter, after, again: accepted === 'duplicate', queued: accepted === 'queued' },
        }
      })
    },
  })
}
