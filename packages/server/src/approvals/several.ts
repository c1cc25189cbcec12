// Several decisions in one request: all of them, or none.
import type { ApprovalDecision, Principal, Session } from '@oxbow/core'
import { HttpError } from '../http/errors.ts'

export interface Named {
  readonly approvalId: string
  readonly decision: ApprovalDecision
}

/**
 * All are checked before the first is decided. One that somebody else decides in between is told as theirs; those before it
 * have been decided then.
 *
 * @throws HttpError 400 when two are about the same approval
 * @throws OxbowError as `Session.decide`
 */
export async function decideAll(session: Session, all: readonly Named[], principal: Principal): Promise<void> {
  const ids = all.map((it) => it.approvalId)
  const twice = ids.find((it, index) => ids.indexOf(it) !== index)
  if (twice !== undefined)
    throw new HttpError(
      400,
      'invalid_request',
      `decisions: two of them are about the approval ${twice}. Nothing has been decided.`,
    )
  for (const { approvalId, decision } of all) await session.checkDecision(approvalId, decision, { principal })
  for (const { approvalId, decision } of all) await session.decide(approvalId, decision, { principal })
}
