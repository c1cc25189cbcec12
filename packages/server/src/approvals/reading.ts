// GET routes of approvals: the inbox, and one approval with what became of it.
import { type Engine, mayDecide, openApprovals, type Session, type SessionKey } from '@oxbow/core'
import { z } from 'zod'
import { HttpError } from '../http/errors.ts'
import { type Route, route } from '../http/route.ts'
import { errorAnswer, optionalId, pageBefore, userQuery, wholeNumber } from '../http/schemas.ts'
import { type Caller, callerOf } from '../principal.ts'
import { type FoundApproval, findApproval, openFound, risesFrom } from './find.ts'
import { placeOfApproval } from './public-id.ts'
import { type ApprovalView, approvalStatusOf, approvalView, approvalViewOf } from './view.ts'

export const approvalPath = z.object({ approvalId: z.string().min(1).max(600) })

export function approvalList(engine: Engine): Route {
  return route({
    method: 'get',
    path: '/api/approvals',
    id: 'listApprovals',
    summary:
      'Approvals that wait for you, in all sessions, also where other calls still run; those that were asked last come first.',
    query: userQuery.extend({
      userId: optionalId.describe('Those that this user asked for, whoever decides; needs oxbow:admin.'),
      mine: z
        .stringbool('must be true or false')
        .default(false)
        .describe('Those that you asked for instead, whoever decides on them.'),
      tool: z.string().max(128).optional(),
      askedBy: optionalId.describe('Of this user only.'),
      limit: wholeNumber(1, 200).default(50),
      before: pageBefore,
    }),
    answers: {
      200: {
        description: 'One page. It may exceed the limit: the approvals of one session stay together.',
        schema: z.object({
          approvals: z.array(approvalView),
          next: z.number().optional().describe('Where the next page begins, when there may be one.'),
        }),
      },
    },
    async handle({ query }, c) {
      const { owner, principal } = callerOf(c, query)
      const { tool, askedBy, limit } = query
      // Who looks into the inbox of somebody else looks at what they have asked for.
      const mine = query.mine || owner.user !== principal.user || owner.tenant !== principal.tenant
      // Who holds no permissions decides on nothing but their own.
      const own = mine || (principal.permissions ?? []).length === 0
      const filter = { tenant: owner.tenant, ...(own && { user: owner.user }), status: 'open' as const, limit }
      const approvals: ApprovalView[] = []
      let { before } = query
      for (;;) {
        const page = await engine.sessions({ ...filter, ...(before !== undefined && { before }) })
        for (const { key, updatedAt } of page) {
          // Sessions of one millisecond stay together: `before` could not name the others.
          if (approvals.length >= limit && updatedAt !== before) return c.json({ approvals, next: before })
          before = updatedAt
          const state = await engine.session(key).state()
          const open = openApprovals(state.turn)
          if (open.length === 0 || (await risesFrom(engine, key, state))) continue
          for (const requested of open) {
            const found = openFound(key, state, requested)
            if (!mine && !mayDecide(requested, principal, found.asker)) continue
            if (tool !== undefined && requested.tool !== tool) continue
            if (askedBy && askedBy !== found.asker.user) continue
            if (approvalStatusOf(found) === 'open') approvals.push(approvalViewOf(key, found, principal))
          }
        }
        if (page.length < limit) return c.json({ approvals })
      }
    },
  })
}

export function approvalRoute(engine: Engine): Route {
  return route({
    method: 'get',
    path: '/api/approvals/{approvalId}',
    id: 'getApproval',
    summary: 'One approval, also after the decision: who decided, what was changed, and what became of the call.',
    params: approvalPath,
    query: userQuery,
    answers: {
      200: { description: 'The approval.', schema: approvalView },
      404: { description: 'There is no such approval, or it is not for you.', schema: errorAnswer },
    },
    async handle({ params, query }, c) {
      const caller = callerOf(c, query)
      const { key, found } = await visible(engine, params.approvalId, caller)
      return c.json(approvalViewOf(key, found, caller.principal))
    },
  })
}

export interface Visible {
  readonly key: SessionKey
  readonly session: Session
  readonly found: FoundApproval
}

/**
 * The approval, for whoever asked for it and for whoever may decide on it. For everybody else there is none.
 *
 * @throws HttpError 404, the same for what does not exist and for what is not theirs
 */
export async function visible(engine: Engine, id: string, { owner, principal }: Caller): Promise<Visible> {
  const place = placeOfApproval(id)
  const own = place?.key.tenant === owner.tenant && place.key.user === owner.user
  const may = own || (place?.key.tenant === owner.tenant && (principal.permissions ?? []).length > 0)
  if (place !== undefined && may) {
    const { key, approvalId } = place
    const session = engine.session(key)
    const found = await findApproval(session, await session.state(), approvalId)
    if (found !== undefined && (own || mayDecide(found.requested, principal, found.asker)))
      return { key, session, found }
  }
  throw new HttpError(
    404,
    'unknown_approval',
    id.startsWith('approval_')
      ? 'There is no approval with this id: it is one inside a session. Take the `id` that stands beside it.'
      : 'There is no approval with this id.',
  )
}
