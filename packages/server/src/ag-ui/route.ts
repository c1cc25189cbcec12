// POST /api/chat/stream: runs a turn of an AG-UI client.
import type { Engine } from '@oxbow/core'
import { z } from 'zod'
import { type AppContext, type Route, route } from '../http/route.ts'
import { errorAnswer, given, userQuery } from '../http/schemas.ts'
import type { TurnSlots } from '../identity/limits/turn-slots.ts'
import { type Caller, callerOf, type Named } from '../principal.ts'
import { lastEventId } from '../stream/last-event-id.ts'
import { runAgentInput } from './input.ts'
import { identified, planOf } from './resume.ts'
import { type StreamDeps, streamTurn } from './turn-stream.ts'

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
    summary: 'Runs a turn and streams it as AG-UI events. The same runId resumes the stream.',
    headers: z.object({ 'Last-Event-ID': z.string().optional().describe('The last received `id:`.') }),
    query: userQuery.extend({
      after: z.string().optional().describe('The same as Last-Event-ID.'),
      strict: z
        .stringbool('must be true or false')
        .default(false)
        .describe('`data:` lines only, the ids of the run in every event, `input` in RUN_STARTED, results as JSON.'),
    }),
    body: runAgentInput(limits.maxMessageLength),
    answers: {
      200: { description: 'AG-UI events, as server-sent events.', contentType: 'text/event-stream' },
      415: { description: 'The content type is not application/json.', schema: errorAnswer },
    },
    async handle({ query, body }, c) {
      const after = lastEventId(c, query.after)
      const { owner, principal } = runnerOf(c, query, body.named)
      const session = engine.session({ ...owner, session: body.threadId })
      // If the session cannot be read, the stream reports the error.
      const command = await identified(session, body).catch(() => body)
      const { threadId, runId, turnId, text, resume, results } = command
      const plan = () => planOf(session, command, principal)
      // Without input and answers, only results for waiting calls of the client can be in the request.
      const early = text === undefined && resume.length === 0 ? await plan() : undefined
      const release = slots.take(principal, session.key, turnId)
      let works = turnId
      const strict = query.strict ? { threadId, runId, input: command.input } : undefined
      const run = { threadId, runId, known: new Set(results.keys()), strict }
      const answer = await streamTurn(deps, c, run, principal, async () => {
        const { begin, ...planned } = early ?? (await plan())
        works = planned.turnId
        return { caller: { owner, principal }, session, ...planned, position: await begin(after) }
      }).catch((error: unknown) => {
        release?.()
        throw error
      })
      // The turn may continue without its reader.
      if (release !== undefined) void session.wait(works).then(release, release)
      return answer
    },
  })
}

/**
 * The protocol has no user: without identity the user is the default one. With identity a named user must be the
 * caller.
 */
function runnerOf(c: AppContext, query: Named, body: Named): Caller {
  if (c.get('caller') === 'anybody') return callerOf(c)
  const byBody = callerOf(c, body)
  return given(query.userId) === undefined && given(query.tenant) === undefined ? byBody : callerOf(c, query)
}
