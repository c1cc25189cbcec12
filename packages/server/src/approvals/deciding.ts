// POST /api/approvals/{approvalId}: a person decides on an approval once.
import { type ApprovalDecision, type Engine, mayDecide, OxbowError } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { z } from 'zod'
import { errorBody, HttpError } from '../http/errors.ts'
import { type AppContext, type Route, route } from '../http/route.ts'
import { editedArguments, errorAnswer, only, whose } from '../http/schemas.ts'
import { callerOf } from '../principal.ts'
import { approvalPath, type Visible, visible } from './reading.ts'
import { rememberedRule } from './remember.ts'
import { type ApprovalView, approvalStatusOf, approvalView, approvalViewOf } from './view.ts'

/** Errors of an approval that another person, or its expiry, has already resolved. */
const DECIDED = new Set(['approval_resolved', 'approval_expired', 'unknown_approval'])

export function decideRoute(engine: Engine): Route {
  return route({
    method: 'post',
    path: '/api/approvals/{approvalId}',
    id: 'decideApproval',
    summary: 'Approves or denies a call, once.',
    params: approvalPath,
    body: only({
      ...whose,
      verdict: z.enum(['approved', 'denied']),
      reason: z.string().max(2_000).optional().describe('For the model and for the record.'),
      arguments: editedArguments
        .optional()
        .describe('Replaces all arguments of the call. They are validated and checked against the rules again.'),
      remember: rememberedRule.optional().describe('A rule that lets similar calls run from now on.'),
    }),
    answers: {
      200: {
        description: 'Decided. The session’s events after `after` show the outcome of the call.',
        schema: approvalView.extend({ after: z.number() }),
      },
      400: {
        description: 'The rule does not match this call, or the edited arguments are invalid. The approval stays open.',
        schema: errorAnswer,
      },
      403: {
        description:
          'You may see the approval but not decide on it, or a rule denies the edited arguments. The approval stays open.',
        schema: errorAnswer,
      },
      404: { description: 'The approval does not exist, or you may not see it.', schema: errorAnswer },
      409: {
        description: 'The approval is already decided or expired, or its turn was stopped.',
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
            ? `Only ${found.asker.user} may decide on this approval.`
            : `Deciding on this approval requires the permission ${approver}.`
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
    ...defined({ reason, arguments: edited }),
    ...(remember !== undefined && { remember: remember as NonNullable<ApprovalDecision['remember']> }),
  }
}

function decided(c: AppContext, approval: ApprovalView): Response {
  const { status, resolution } = approval
  const by = resolution?.by === undefined ? '' : ` by ${resolution.by}`
  const message =
    status === 'cancelled'
      ? 'The turn of this approval was stopped.'
      : `This approval was already decided: ${status}${by}.`
  return c.json(
    { ...errorBody(status === 'expired' ? 'approval_expired' : 'approval_resolved', message), approval },
    409,
  )
}
