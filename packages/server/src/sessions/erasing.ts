// Erasure: of a session by its user, of a user or a tenant by an administrator.
import { type Engine, eraseData } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { z } from 'zod'
import { existing } from '../existing-session.ts'
import { HttpError } from '../http/errors.ts'
import { type Route, route } from '../http/route.ts'
import { errorAnswer, given, only, optionalId, sessionPath, whose } from '../http/schemas.ts'
import { callerOf } from '../principal.ts'

const erased = z.object({ sessions: z.number().int(), files: z.number().int() })

export function eraseSessionRoute(engine: Engine): Route {
  return route({
    method: 'delete',
    path: '/api/sessions/{sessionId}',
    id: 'eraseSession',
    summary: 'Erases a session with its files and sub-agents; an open turn is stopped first.',
    params: sessionPath,
    query: z.object(whose),
    answers: {
      200: { description: 'What was erased.', schema: erased },
      404: { description: 'Unknown session.', schema: errorAnswer },
    },
    async handle({ params: { sessionId }, query }, c) {
      const { owner, principal } = callerOf(c, query)
      await existing(engine, sessionId, owner)
      return c.json(await eraseData(engine, { ...owner, session: sessionId }, principal))
    },
  })
}

export function eraseDataRoute(engine: Engine): Route {
  return route({
    method: 'post',
    path: '/admin/api/erase',
    id: 'eraseData',
    access: 'admin',
    summary: 'Erases everything that is stored about a user, or about all users of a tenant.',
    body: only({
      tenant: optionalId.describe('Default: your own.'),
      userId: optionalId,
      allUsers: z.literal(true).optional().describe('Instead of userId: the whole tenant.'),
    }),
    answers: { 200: { description: 'What was erased.', schema: erased } },
    async handle({ body }, c) {
      const { owner, principal } = callerOf(c, body)
      const user = given(body.userId)
      if ((user === undefined) !== (body.allUsers === true))
        throw new HttpError(400, 'invalid_request', 'Send either userId or "allUsers": true.')
      return c.json(await eraseData(engine, { tenant: owner.tenant, ...defined({ user }) }, principal))
    },
  })
}
