// A tool that finds out while it works that a person has to decide: it stops, the turn waits in the journal, and the
// tool runs again with the decision.

import {
  anything,
  checkFields,
  type Fields,
  listOf,
  object,
  oneOf,
  permissionId,
  positive,
  text,
} from '../checks/fields.ts'
import { OxbowError } from '../errors.ts'
import type { Event } from '../events/types.ts'

export interface ApprovalRequest {
  /** The content of the decision, shown unchanged. */
  readonly arguments: Readonly<Record<string, unknown>>
  readonly reason: string
  /** The call asks for another agent: a decision here is a decision there, with the same choices. */
  readonly origin?: NonNullable<Event<'approval.requested'>['origin']>
  /** Whose arguments they are. Default: the tool that asks. */
  readonly tool?: string
  /** Of another agent: rules that would let calls like it run there. Default: none. */
  readonly suggestions?: readonly string[]
  /** The scopes in which they can be accepted. Default: all. */
  readonly scopes?: Event<'approval.requested'>['scopes']
  /** Instead of the tool's own. */
  readonly approver?: string
  /** Milliseconds since 1970. Default: the agent's time for approvals from now on. */
  readonly expiresAt?: number
}

/** Its outcome. */
export interface ToolDecision {
  readonly verdict: 'approved' | 'denied' | 'expired'
  readonly reason?: string
  readonly origin?: ApprovalRequest['origin']
  /** The request. */
  readonly arguments: Readonly<Record<string, unknown>>
}

export class NeedsApproval {
  readonly request: ApprovalRequest
  constructor(request: ApprovalRequest) {
    this.request = request
  }
}

/**
 * Returned by a tool instead of a result. It must have left nothing that runs on: the same call begins again, with the
 * same operation id and with `decision` in its context, perhaps days later and in another process.
 *
 * @param request what the person decides on, and why
 * @returns what the tool returns
 * @throws OxbowError `approval_invalid`, naming the field
 * @example
 * run: async ({ amount }, { decision }) => {
 *   if (amount > 100 && !decision) return needsApproval({ arguments: { amount }, reason: 'It is more than 100 euros.'
 * })
 *   return decision?.verdict === 'denied' ? 'Not paid.' : pay(amount)
 * }
 */
export function needsApproval(request: ApprovalRequest): NeedsApproval {
  checkFields(request, FIELDS, (what) => new OxbowError('approval_invalid', `needsApproval(): ${what}`))
  if (request.arguments === undefined || request.reason === undefined)
    throw new OxbowError(
      'approval_invalid',
      'needsApproval(): arguments and reason are required. The person decides on exactly these arguments.',
    )
  return new NeedsApproval(request)
}

const FIELDS: Fields<ApprovalRequest> = {
  arguments: object,
  reason: text,
  origin: anything,
  tool: text,
  suggestions: listOf(text),
  scopes: listOf(oneOf('session', 'user', 'project')),
  approver: permissionId,
  expiresAt: positive,
}
