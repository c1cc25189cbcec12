// POST /api/approvals/{approvalId}: a person decides, once.
import { type ApprovalDecision, type Engine, mayDecide, OxbowError } from '@oxbow/core'
import { z } from 'zod'
import { errorBody, HttpError } from '../http/errors.ts'
import { type AppContext, type Route, route } from '../http/route.ts'
import { errorAnswer, only, whose } from '../http/schemas.ts'
import { callerOf } from '../principal.ts'
import { approvalPath, type Visible, visible } from './reading.ts'
import { rememberedRule } from './remember.ts'
import { type ApprovalView, approvalStatusOf, approvalView, approvalViewOf } from './view.ts'

/** Somebody, or time, was quicker. */
const DECIDED = new Set(['approval_resolved', 'approval_expired', 'unknown_approval'])

export function decideRoute(engine: Engine): Route {
  return route({
    method: 'post',
    path: '/api/approvals/{approvalId}',
    id: 'decideApproval',
    summary: 'Approves or refuses a call, once.',
    params: approvalPath,
    body: only({
      ...whose,
      verdict: z.enum(['approved', 'denied']),
      reason: z.string().max(2_000).optional().describe('For the model and for the record.'),
      arguments: z
        .record(z.string(), z.unknown())
        .optional()
        .describe('Instead of the ones that were asked for, all of them. They are validated and judged again.'),
      remember: rememberedRule.optional().describe('Let calls like this one run from now on.'),
    }),
    answers: {
      200: {
        description: 'Decided. Events of the session after `after` tell what becomes of the call.',
        schema: approvalView.extend({ after: z.number() }),
      },
      400: {
        description: 'The rule does not cover this call, or the edited arguments do not fit the tool. It still waits.',
        schema: errorAnswer,
      },
      403: {
        description:
          'You may see it, but somebody else decides; or a rule denies the edited arguments. It still waits.',
        schema: errorAnswer,
      },
      404: { description: 'There is no such approval, or it is not for you.', schema: errorAnswer },
      409: {
        description: 'It is decided already, its time is over, or its turn was stopped.',
        schema: errorAnswer.extend({ approval: approvalView }),
      },
    },
    async handle({ params: { approvalId }, body }, c) {
      const caller = callerOf(c, body)
      const { principal } = caller
      const { key, session, found } = await visible(engine, approvalId, caller)
      const view = ({ found: it }: Pick<Visible, 'found'>) => approvalViewOf(key, it, principal)
      if (approvalStatusOf(found) !== 'open' && approvalStatusOf(found) !== 'expired')
        return decided(c, view({ found }))
      if (!mayDecide(found.requested, principal, found.asker)) {
        const { approver } = found.requested
        const who =
          approver === undefined
            ? `Only ${found.asker.user} decides on this.`
            : `This needs the permission ${approver}.`
        throw new HttpError(403, 'approval_forbidden', who)
      }
      const decision = decisionOf(body)
      try {
        const { after } = await session.decide(found.requested.approvalId, decision, { principal })
        return c.json({ ...view(await visible(engine, approvalId, caller)), after })
      } catch (error) {
        if (!(error instanceof OxbowError) || !DECIDED.has(error.code)) throw error
        return decided(c, view(await visible(engine, approvalId, caller)))
      }
    },
  })
}

function decisionOf(body: {
  verdict: ApprovalDecision['verdict']
  reason?: string | undefined
  arguments?: Record<string, unknown> | undefined
  remember?: z.infer<typeof rememberedRule> | undefined
}): ApprovalDecision {
  const { verdict, reason, arguments: edited, remember } = body
  return {
    verdict,
    ...(reason !== undefined && { reason }),
    ...(edited !== undefined && { arguments: edited }),
    ...(remember !== undefined && { remember: remember as NonNullable<ApprovalDecision['remember']> }),
  }
}

function decided(c: AppContext, approval: ApprovalView): Response {
  const { status, resolution } = approval
  const by = resolution?.by === undefined ? '' : ` by ${resolution.by}`
  const message = status === 'cancelled' ? 'Its turn was stopped.' : `This has been decided already: ${status}${by}.`
  return c.json(
    { ...errorBody(status === 'expired' ? 'approval_expired' : 'approval_resolved', message), approval },
    409,
  )
}
