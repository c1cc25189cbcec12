// Lists and removes rules that people accepted together with an approval.
import { type Engine, rememberedRules } from '@oxbow/core'
import { ADMIN, mayShareRules } from '@oxbow/core/internal'
import { z } from 'zod'
import { existing } from '../existing-session.ts'
import { HttpError } from '../http/errors.ts'
import { type Route, route } from '../http/route.ts'
import { errorAnswer, given, optionalId, userQuery } from '../http/schemas.ts'
import { callerOf } from '../principal.ts'

const rememberedView = z.object({
  id: z.string().optional().describe('Missing for a rule of a session, which ends with the session.'),
  rule: z.string(),
  scope: z.enum(['session', 'user', 'project']),
  author: z.string().describe('The user who accepted the rule.'),
  origin: z.string().optional().describe("The origin of the tool. Missing: the agent's own tool."),
  expiresAt: z.number().optional().describe('Milliseconds since 1970.'),
})

export function ruleList(engine: Engine): Route {
  return route({
    method: 'get',
    path: '/api/rules',
    id: 'listRules',
    summary: 'The accepted rules that let your calls run.',
    query: userQuery.extend({ sessionId: optionalId.describe('Include the rules of this session.') }),
    answers: { 200: { description: 'All rules.', schema: z.object({ rules: z.array(rememberedView) }) } },
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
    summary: 'Removes a rule: matching calls need approval again. A rule of scope `project` requires oxbow:admin.',
    params: z.object({ ruleId: z.string().min(1).max(100) }),
    query: userQuery,
    answers: {
      200: { description: 'The removed rule.', schema: z.object({ removed: rememberedView }) },
      403: { description: 'The rule is for the whole tenant, and you are not an administrator.', schema: errorAnswer },
      404: { description: 'There is no such rule.', schema: errorAnswer },
    },
    async handle({ params: { ruleId }, query }, c) {
      const { owner, principal } = callerOf(c, query)
      const rules = rememberedRules(engine.backend)
      const found = (await rules.list(owner)).find((it) => it.id === ruleId)
      if (found?.scope === 'project' && !mayShareRules(principal))
        throw new HttpError(403, 'forbidden', `Removing a rule of scope "project" requires the permission ${ADMIN}.`)
      const removed = found && (await rules.remove(owner, ruleId))
      if (removed === undefined) throw new HttpError(404, 'unknown_rule', 'There is no rule with this id.')
      return c.json({ removed })
    },
  })
}
