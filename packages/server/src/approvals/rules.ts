// Rules that people accepted together with an approval: seen, and taken back.
import { type Engine, rememberedRules } from '@oxbow/core'
import { ADMIN, mayShareRules } from '@oxbow/core/internal'
import { z } from 'zod'
import { HttpError } from '../http/errors.ts'
import { type Route, route } from '../http/route.ts'
import { errorAnswer, given, optionalId, userQuery } from '../http/schemas.ts'
import { callerOf } from '../principal.ts'
import { existing } from '../sessions/reading.ts'

const rememberedView = z.object({
  id: z.string().optional().describe('Missing for a rule of a session, which ends with it.'),
  rule: z.string(),
  scope: z.enum(['session', 'user', 'project']),
  author: z.string().describe('Who accepted it.'),
  origin: z.string().optional().describe("Where the tool comes from: without it, it is the agent's own."),
  expiresAt: z.number().optional().describe('Milliseconds since 1970.'),
})

export function ruleList(engine: Engine): Route {
  return route({
    method: 'get',
    path: '/api/rules',
    id: 'listRules',
    summary: 'The rules that were accepted with approvals and let calls of yours run.',
    query: userQuery.extend({ sessionId: optionalId.describe('Those of this session as well.') }),
    answers: { 200: { description: 'All of them.', schema: z.object({ rules: z.array(rememberedView) }) } },
    async handle({ query }, c) {
      const { owner } = callerOf(c, query)
      const sessionId = given(query.sessionId)
      const session = sessionId === undefined ? [] : (await existing(engine, sessionId, owner)).rules
      const rules = [
        ...session.map(({ asker: _, ...it }) => ({ ...it, scope: 'session' as const })),
        ...(await rememberedRules(engine.backend).list(owner)),
      ]
      return c.json({ rules })
    },
  })
}

export function removeRuleRoute(engine: Engine): Route {
  return route({
    method: 'delete',
    path: '/api/rules/{ruleId}',
    id: 'removeRule',
    summary: 'Takes a rule back: calls like it ask again. One of the project needs oxbow:admin.',
    params: z.object({ ruleId: z.string().min(1).max(100) }),
    query: userQuery,
    answers: {
      200: { description: 'What was taken back.', schema: z.object({ removed: rememberedView }) },
      403: { description: 'The rule is for everybody.', schema: errorAnswer },
      404: { description: 'There is no such rule.', schema: errorAnswer },
    },
    async handle({ params: { ruleId }, query }, c) {
      const { owner, principal } = callerOf(c, query)
      const rules = rememberedRules(engine.backend)
      const found = (await rules.list(owner)).find((it) => it.id === ruleId)
      if (found?.scope === 'project' && !mayShareRules(principal))
        throw new HttpError(
          403,
          'forbidden',
          `A rule for the whole project is taken back with the permission ${ADMIN}.`,
        )
      const removed = found && (await rules.remove(owner, ruleId))
      if (removed === undefined) throw new HttpError(404, 'unknown_rule', 'There is no rule with this id.')
      return c.json({ removed })
    },
  })
}
