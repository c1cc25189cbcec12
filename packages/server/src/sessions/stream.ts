// GET /api/sessions/{sessionId}/stream: streams a turn, from its start or from the reader's position.
import { type Engine, findTurn, type SessionState } from '@oxbow/core'
import { z } from 'zod'
import { type StreamDeps, streamTurn } from '../ag-ui/turn-stream.ts'
import { existing, sessionOf } from '../existing-session.ts'
import { HttpError } from '../http/errors.ts'
import { type Route, route } from '../http/route.ts'
import { errorAnswer, given, optionalId, sessionPath, userQuery } from '../http/schemas.ts'
import { callerOf } from '../principal.ts'
import { lastEventId } from '../stream/last-event-id.ts'

export function sessionStreamRoute(engine: Engine, deps: StreamDeps): Route {
  return route({
    method: 'get',
    path: '/api/sessions/{sessionId}/stream',
    id: 'sessionStream',
    summary: 'Streams a turn as AG-UI events; without a turn id the open one, otherwise the last one.',
    params: sessionPath,
    headers: z.object({ 'Last-Event-ID': z.string().optional().describe('The last received `id:`.') }),
    query: userQuery.extend({
      after: z.string().optional().describe('The same as Last-Event-ID.'),
      turnId: optionalId,
    }),
    answers: {
      200: { description: 'AG-UI events, as server-sent events.', contentType: 'text/event-stream' },
      404: { description: 'The session or turn does not exist.', schema: errorAnswer },
    },
    async handle({ params: { sessionId }, query }, c) {
      const after = lastEventId(c, query.after)
      const caller = callerOf(c, query)
      const { owner } = caller
      const state = await existing(engine, sessionId, owner)
      const found = findTurn(state, given(query.turnId) ?? lastTurnId(state) ?? '')
      if (found === undefined)
        throw new HttpError(404, 'unknown_turn', `The turn does not exist in session ${JSON.stringify(sessionId)}.`)
      if (c.req.method === 'HEAD') return c.body(null, 200, { 'content-type': 'text/event-stream' })
      const { turnId, startedSeq } = found
      const startedAfter = startedSeq - 1
      const session = sessionOf(engine, sessionId, owner)
      return streamTurn(deps, c, { threadId: sessionId, runId: turnId }, caller.principal, async () => ({
        caller,
        session,
        turnId,
        position: { startedAfter, after: after ?? startedAfter, repeated: true, queued: false },
      }))
    },
  })
}

/** The open turn, otherwise the last one. */
const lastTurnId = ({ turn, queue, finished }: SessionState): string | undefined =>
  turn?.turnId ?? queue[0]?.started.turnId ?? finished.at(-1)?.turnId
