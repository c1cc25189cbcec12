// A person decides on an approval: what they may say, and what is stored of it.
import type { Agent } from './agent.ts'
import { OxbowError } from './errors.ts'
import type { Event, Principal } from './events/types.ts'
import { mayDecide } from './permissions/may-decide.ts'
import { matchesCall, parseRule } from './permissions/rules.ts'
import type { SessionKey } from './ports.ts'
import type { Draft } from './session-log.ts'
import type { ApprovalState, SessionState, TurnState } from './state.ts'

export interface ApprovalDecision {
  readonly verdict: 'approved' | 'denied'
  readonly reason?: string
  /** Instead of the arguments that the model gave. */
  readonly arguments?: Readonly<Record<string, unknown>>
  /** Accept a rule (one of the suggestions, or a narrower one) for calls like this one from now on. */
  readonly remember?: {
    readonly rule: string
    readonly scope: 'session' | 'user' | 'project'
    readonly expiresAt?: number
  }
}

export interface Deciding {
  readonly key: SessionKey
  readonly approvalId: string
  readonly decision: ApprovalDecision
  readonly principal: Principal
}

/** The approval, if this person may decide on it now. Its time may be over. */
function openApproval(
  state: SessionState,
  { key, approvalId, principal }: Deciding,
): { turn: TurnState; approval: ApprovalState } {
  const { turn } = state
  const call = turn?.calls.find((it) => it.approval?.requested.approvalId === approvalId)
  const approval = call?.approval
  if (turn === undefined || approval === undefined)
    throw new OxbowError('unknown_approval', `No approval ${JSON.stringify(approvalId)} is waiting in this session.`)
  if (approval.resolved !== undefined || call?.finished !== undefined)
    throw new OxbowError('approval_resolved', 'This approval has been decided already.', {
      details: { verdict: approval.resolved?.verdict },
    })
  if (!mayDecide(approval.requested, principal, key))
    throw new OxbowError(
      'approval_forbidden',
      approval.requested.approver === undefined
        ? `Only ${key.user} may decide on this.`
        : `Deciding on this needs the permission ${approval.requested.approver}.`,
    )
  return { turn, approval }
}

/**
 * Stores the decision. Resolves with its turn, or with undefined when its time was over, which is stored instead.
 *
 * @throws OxbowError as `Session.decide`
 */
export function resolveApproval(draft: Draft, agent: Agent, deciding: Deciding): string | undefined {
  const { turn, approval } = openApproval(draft.state, deciding)
  const { approvalId, decision, principal } = deciding
  const { turnId } = turn
  if (approval.requested.expiresAt <= Date.now()) {
    // Nobody has swept it up yet; that must not lengthen the time.
    draft.add({ type: 'approval.resolved', turnId, approvalId, verdict: 'expired' })
    return undefined
  }
  const { verdict, reason, arguments: edited, remember: rule } = decision
  if (approval.attempt !== undefined && (rule !== undefined || edited !== undefined))
    throw new OxbowError('decision_invalid', 'The tool asks while it works: approve or refuse, without more.')
  if (rule !== undefined) checkRemembered(rule.rule, approval.requested, agent)
  draft.add({
    type: 'approval.resolved',
    turnId,
    approvalId,
    verdict,
    principal,
    ...(reason !== undefined && { reason }),
    ...(edited !== undefined && { arguments: { ...edited } }),
    ...(rule !== undefined && { remember: { ...rule } }),
  })
  return turnId
}

export const expired = (): OxbowError =>
  new OxbowError('approval_expired', 'The time to decide on this has run out.', { details: { verdict: 'expired' } })

/** A rule may be accepted only if it covers the call at hand, and no more tools than its own. */
function checkRemembered(text: string, requested: Event<'approval.requested'>, agent: Agent): void {
  const rule = parseRule(text)
  const tool = agent.tools.get(requested.tool)
  if (tool === undefined || rule.tool !== tool.name || !matchesCall(rule, 'allow', tool, requested.arguments))
    throw new OxbowError(
      'rule_invalid',
      `permission rule ${JSON.stringify(text)}: it does not cover this call of ${requested.tool}`,
    )
  if (tool.approval === 'always')
    throw new OxbowError('rule_invalid', `${tool.name} needs an approval each time; no rule can take its place`)
}
