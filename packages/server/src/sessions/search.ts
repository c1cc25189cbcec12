// GET /api/sessions/search: full-text search in conversations, compacted parts included.
import { type Engine, searchSessions } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { z } from 'zod'
import { type Route, route } from '../http/route.ts'
import { given, optionalId, pageBefore, userQuery, wholeNumber } from '../http/schemas.ts'
import { callerOf } from '../principal.ts'

const QUERY_RULE = 'must have 1 to 200 characters'

export function sessionSearchRoute(engine: Engine): Route {
  return route({
    method: 'get',
    path: '/api/sessions/search',
    id: 'searchSessions',
    summary: 'Searches the messages, calls and results in the sessions of a user, newest first.',
    query: userQuery.extend({
      q: z
        .string(QUERY_RULE)
        .trim()
        .min(1, QUERY_RULE)
        .max(200, QUERY_RULE)
        .describe('Words that must all occur in one message, regardless of case.'),
      sessionId: optionalId,
      limit: wholeNumber(1, 100).default(20),
      before: pageBefore,
    }),
    answers: {
      200: {
        description: 'At most three hits per session; with `sessionId` all hits up to the limit.',
        schema: z.object({
          hits: z.array(
            z.object({
              sessionId: z.string(),
              title: z.string(),
              turnId: z.string(),
              seq: z.number().describe('The event that contains the hit.'),
              at: z.number().describe('Milliseconds since 1970.'),
              role: z.enum(['user', 'agent', 'assistant', 'call', 'result']),
              text: z.string().describe('The text around the first of the words.'),
            }),
          ),
          next: z.number().optional().describe('`before` of the next page, if there may be one.'),
          complete: z.boolean().describe('False when a session was too long to be searched completely.'),
        }),
      },
    },
    async handle({ query }, c) {
      const { owner } = callerOf(c, query)
      const { q, limit, before } = query
      const session = given(query.sessionId)
      const { hits, next, complete } = await searchSessions(engine.backend.journal, {
        ...owner,
        text: q,
        limit,
        ...defined({ session, before }),
      })
      const shown = hits.map(({ session: sessionId, ...hit }) => ({ sessionId, ...hit }))
      return c.json({ hits: shown, ...defined({ next }), complete })
    },
  })
}
