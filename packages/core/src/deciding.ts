// A person decides on an approval: what they may say, and what is stored of it.
import type { Agent } from './agent.ts'
import { parseArguments } from './arguments.ts'
import { OxbowError } from './errors.ts'
import type { Event, Principal } from './events/types.ts'
import { denialOf, policyOf } from './permissions/gate.ts'
import { mayDecide } from './permissions/may-decide.ts'
import { matchesCall, parseRule } from './permissions/rules.ts'
import type { SessionKey } from './ports.ts'
import type { Draft } from './session-log.ts'
import type { SessionState, TurnState } from './state.ts'

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
  /** The session's agent. @throws OxbowError when it is not known here */
  agent(): Agent
}

/** The approval, if this person may decide so on it. `late`: its time is over, which nobody may have stored yet. */
function openApproval(
  state: SessionState,
  { key, approvalId, decision, principal }: Deciding,
): { turn: TurnState; requested: Event<'approval.requested'>; late: boolean } {
  const { turn } = state
  const call = turn?.calls.find((it) => it.approval?.requested.approvalId === approvalId)
  const approval = call?.approval
  if (turn === undefined || approval === undefined)
    throw new OxbowError('unknown_approval', `No approval ${JSON.stringify(approvalId)} is waiting in this session.`)
  const { requested, resolved, attempt } = approval
  if (resolved !== undefined || call?.finished !== undefined)
    throw new OxbowError('approval_resolved', 'This approval has been decided already.', {
      details: { verdict: resolved?.verdict },
    })
  if (!mayDecide(requested, principal, key))
    throw new OxbowError(
      'approval_forbidden',
      requested.approver === undefined
        ? `Only ${key.user} may decide on this.`
        : `Deciding on this needs the permission ${requested.approver}.`,
    )
  if (requested.expiresAt <= Date.now()) return { turn, requested, late: true }
  const { arguments: edited, remember: rule } = decision
  if (attempt !== undefined && (rule !== undefined || edited !== undefined))
    throw new OxbowError('decision_invalid', 'The tool asks while it works: approve or refuse, without more.')
  return { turn, requested, late: false }
}

/**
 * What would be stored: the decision, with edited arguments coerced, validated and judged. They are judged again when they
 * are used; here whoever edits learns of a mistake, and the approval stays open.
 *
 * @throws OxbowError as `Session.decide`
 */
export async function checkDecision(
  state: SessionState,
  deciding: Deciding,
): Promise<{ decision: ApprovalDecision; late: boolean }> {
  const { turn, requested, late } = openApproval(state, deciding)
  const { decision } = deciding
  const { verdict, arguments: edited, remember: rule } = decision
  if (late) return { decision, late }
  if (rule !== undefined) await checkRemembered(rule.rule, requested, deciding.agent())
  if (edited === undefined || verdict !== 'approved') return { decision, late }
  const agent = deciding.agent()
  const tool = agent.tools.get(requested.tool)
  if (tool === undefined)
    throw new OxbowError('decision_invalid', `${requested.tool} does not exist any more: the call can only be refused.`)
  const parsed = await parseArguments(JSON.stringify(edited), tool)
  if (!parsed.ok)
    throw new OxbowError(
      'arguments_invalid',
      `The edited arguments do not fit ${tool.name}: ${parsed.problem}. Nothing has been decided.`,
    )
  const denied = await denialOf({
    tool,
    arguments: parsed.arguments,
    principal: turn.principal,
    policy: policyOf(agent.policy, turn),
  })
  if (denied !== undefined)
    throw new OxbowError(
      'arguments_denied',
      `${tool.name} may not run with the edited arguments (${denied.rule}): ${denied.reason} Nothing has been decided.`,
    )
  return { decision: { ...decision, arguments: parsed.given }, late }
}

/**
 * Stores a decision that `checkDecision` gave. Returns its turn, or undefined when its time was over, which is stored instead.
 *
 * @throws OxbowError when somebody was quicker
 */
export function resolveApproval(draft: Draft, deciding: Deciding): string | undefined {
  const { turn, late } = openApproval(draft.state, deciding)
  const { approvalId, decision, principal } = deciding
  const { turnId } = turn
  if (late) {
    draft.add({ type: 'approval.resolved', turnId, approvalId, verdict: 'expired' })
    return undefined
  }
  const { verdict, reason, arguments: edited, remember: rule } = decision
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
async function checkRemembered(text: string, requested: Event<'approval.requested'>, agent: Agent): Promise<void> {
  const rule = parseRule(text)
  const tool = agent.tools.get(requested.tool)
  if (tool === undefined || rule.tool !== tool.name || !(await matchesCall(rule, 'allow', tool, requested.arguments)))
    throw new OxbowError(
      'rule_invalid',
      `permission rule ${JSON.stringify(text)}: it does not cover this call of ${requested.tool}`,
    )
  if (tool.approval === 'always')
    throw new OxbowError('rule_invalid', `${tool.name} needs an approval each time; no rule can take its place`)
}
