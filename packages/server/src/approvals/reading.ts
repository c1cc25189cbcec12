// GET routes of approvals: the inbox, and one approval with its outcome.

import { type Engine, mayDecide, openApprovals, type Session, type SessionKey } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
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
      'Open approvals that you may decide on, in all sessions, newest first. Other calls of their turns may still run.',
    query: userQuery.extend({
      userId: optionalId.describe(
        'Approvals that this user’s calls requested, regardless of who decides on them; requires oxbow:admin.',
      ),
      mine: z
        .stringbool('must be true or false')
        .default(false)
        .describe('Instead, approvals that your own calls requested, regardless of who decides on them.'),
      tool: z.string().max(128).optional(),
      askedBy: optionalId.describe('Only approvals that this user’s calls requested.'),
      limit: wholeNumber(1, 200).default(50),
      before: pageBefore,
    }),
    answers: {
      200: {
        description: 'One page. It may exceed the limit, because the approvals of one session stay together.',
        schema: z.object({
          approvals: z.array(approvalView),
          next: z.number().optional().describe('`before` of the next page, if there may be one.'),
        }),
      },
    },
    async handle({ query }, c) {
      const { owner, principal } = callerOf(c, query)
      const { tool, askedBy, limit } = query
      // An inbox of another user lists the approvals which that user's calls requested.
      const mine = query.mine || owner.user !== principal.user || owner.tenant !== principal.tenant
      // Without permissions a user can decide only on their own approvals.
      const own = mine || (principal.permissions ?? []).length === 0
      const filter = { tenant: owner.tenant, ...(own && { user: owner.user }), status: 'open' as const, limit }
      const approvals: ApprovalView[] = []
      let { before } = query
      for (;;) {
        const page = await engine.sessions({ ...filter, ...defined({ before }) })
        for (const { key, updatedAt } of page) {
          // Sessions updated in the same millisecond stay together: `before` could not separate them.
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
    summary: 'One approval, open or decided: who decided, what was changed, and the outcome of the call.',
    params: approvalPath,
    query: userQuery,
    answers: {
      200: { description: 'The approval.', schema: approvalView },
      404: { description: 'The approval does not exist, or you may not see it.', schema: errorAnswer },
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
 * The approval, for the user who requested it and for users who may decide on it. For all others it does not exist.
 *
 * @throws HttpError 404, the same for an unknown and for a forbidden approval
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
      ? 'There is no approval with this id. It is an id inside a session: use the `id` next to it.'
      : 'There is no approval with this id.',
  )
}
