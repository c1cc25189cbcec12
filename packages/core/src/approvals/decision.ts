// A person's decision on an approval: its form, its checks, and the event that is stored.
import type { Agent } from '../agents/agent-type.ts'
import { ADMIN, mayDecide, mayShareRules } from '../authority.ts'
import { defined } from '../checks/defined.ts'
import { stringifyExact } from '../checks/exact-json.ts'
import { anyText, anything, checkFields, type Fields, fieldsOf, object, oneOf, text } from '../checks/fields.ts'
import { OxbowError } from '../errors.ts'
import type { Event, Principal } from '../events/types.ts'
import type { Draft } from '../journal/draft.ts'
import { authorise, denialOf, type GateRequest, policyOf, withRemembered } from '../permissions/gate.ts'
import { matchesCall, parseRule, type Rule } from '../permissions/rules.ts'
import { callOfApproval, type SessionState, type TurnState } from '../state/state.ts'
import { parseArguments } from '../tools/arguments.ts'
import type { Tool } from '../tools/tool.ts'

export interface ApprovalDecision {
  readonly verdict: 'approved' | 'denied'
  readonly reason?: string
  /** Instead of the arguments that the model gave. */
  readonly arguments?: Readonly<Record<string, unknown>>
  /** Accept a rule (one of the suggestions, or a narrower one) for calls like this one from now on. */
  readonly remember?: {
    readonly rule: string
    /** `project`: for the whole tenant. A principal with permissions needs `oxbow:admin` among them. */
    readonly scope: 'session' | 'user' | 'project'
    /** Milliseconds since 1970, or a time as ISO 8601 writes it; in the future. Default: for good. */
    readonly expiresAt?: number | string
  }
}

type Remember = Omit<NonNullable<ApprovalDecision['remember']>, 'expiresAt'> & {
  readonly expiresAt?: number
  /** Of the tool; known when the decision has been checked. */
  readonly origin?: string
}

/** A parsed decision: only known fields, and times as numbers. */
export interface ReadDecision extends Omit<ApprovalDecision, 'remember'> {
  readonly remember?: Remember
}

/** The verdict, the rule and its expiry are validated below, each with its own message. */
const FIELDS: Fields<ApprovalDecision> = {
  verdict: anything,
  reason: anyText,
  arguments: object,
  remember: fieldsOf({ rule: text, scope: oneOf('session', 'user', 'project'), expiresAt: anything }),
}

/**
 * A parsed decision. Invalid input decides nothing: it must never count as a yes.
 *
 * @throws OxbowError `decision_invalid`, `rule_invalid`
 */
export function readDecision(given: ApprovalDecision): ReadDecision {
  checkFields(given, FIELDS, unclear)
  const { verdict, reason, arguments: edited, remember } = given
  if (verdict !== 'approved' && verdict !== 'denied')
    throw unclear(`verdict must be "approved" or "denied"; got ${JSON.stringify(verdict) ?? 'nothing'}`)
  if (verdict === 'denied' && edited !== undefined) throw unclear('a refusal has no arguments: nothing would run')
  if (verdict === 'denied' && remember !== undefined)
    throw unclear('a refusal remembers nothing: a remembered rule lets calls run')
  return {
    verdict,
    ...defined({ reason, arguments: edited }),
    ...(remember !== undefined && { remember: readRule(remember) }),
  }
}

const unclear = (what: string) => new OxbowError('decision_invalid', `${what}. Nothing was decided.`)

const ISO = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/

function readRule({ rule, scope, expiresAt }: NonNullable<ApprovalDecision['remember']>): Remember {
  if (rule === undefined || scope === undefined) throw unclear('remember needs a rule and a scope')
  if (expiresAt === undefined) return { rule, scope }
  const at = typeof expiresAt === 'string' && ISO.test(expiresAt) ? Date.parse(expiresAt) : expiresAt
  if (typeof at !== 'number' || !Number.isSafeInteger(at) || at <= Date.now())
    throw new OxbowError(
      'rule_invalid',
      `remember.expiresAt must be a time to come, in milliseconds since 1970 or as ISO 8601 (2030-01-31T12:00:00Z); got ${JSON.stringify(expiresAt)}. Nothing was decided.`,
    )
  return { rule, scope, expiresAt: at }
}

export interface DecisionAttempt {
  readonly approvalId: string
  readonly decision: ReadDecision
  readonly principal: Principal
  /** The session's agent. @throws OxbowError when it is not known here */
  agent(): Agent
}

/** The approval, if this person may make this decision. `late`: it has expired, although that may not be stored yet. */
function openApproval(
  state: SessionState,
  { approvalId, decision, principal }: DecisionAttempt,
): { turn: TurnState; requested: Event<'approval.requested'>; late: boolean } {
  const { turn } = state
  const call = callOfApproval(turn, approvalId)
  const approval = call?.approval
  if (turn === undefined || approval === undefined)
    throw new OxbowError('unknown_approval', `No approval ${JSON.stringify(approvalId)} is waiting in this session.`)
  const { requested, resolved, attempt } = approval
  if (resolved !== undefined || call?.finished !== undefined)
    throw new OxbowError('approval_resolved', 'This approval has been decided already.', {
      details: { verdict: resolved?.verdict },
    })
  if (!mayDecide(requested, principal, turn.principal))
    throw new OxbowError(
      'approval_forbidden',
      requested.approver === undefined
        ? `Only ${turn.principal.user}, who started the turn, may decide on this.`
        : `Deciding on this needs the permission ${requested.approver}.`,
    )
  if (requested.expiresAt <= Date.now()) return { turn, requested, late: true }
  const { arguments: edited, remember: rule } = decision
  if (rule?.scope === 'project' && !mayShareRules(principal))
    throw new OxbowError(
      'approval_forbidden',
      `A rule for the whole project needs the permission ${ADMIN}. Accept it for the session or the user.`,
    )
  if (attempt !== undefined && (rule !== undefined || edited !== undefined))
    throw new OxbowError('decision_invalid', 'The tool asks while it works: approve or refuse, without more.')
  return { turn, requested, late: false }
}

/**
 * What would be stored: the decision, with edited arguments coerced, validated and judged. They are judged again when
 * they are used; here the editor learns of a mistake, and the approval stays open.
 *
 * @throws OxbowError as `Session.decide`
 */
export async function checkDecision(
  state: SessionState,
  deciding: DecisionAttempt,
): Promise<{ decision: ReadDecision; late: boolean }> {
  const { turn, requested, late } = openApproval(state, deciding)
  const { decision } = deciding
  const { arguments: edited, remember: rule } = decision
  if (late || (edited === undefined && rule === undefined)) return { decision, late }
  const agent = deciding.agent()
  const tool = agent.tools.get(requested.tool)
  if (tool === undefined)
    throw new OxbowError('decision_invalid', `${requested.tool} no longer exists: the call can only be denied.`)
  const parsed = edited === undefined ? requested : await checkEdited(edited, tool)
  const call = { tool, arguments: parsed.arguments, principal: turn.principal, policy: policyOf(agent.policy, turn) }
  const denied = edited === undefined ? undefined : await denialOf(call)
  if (denied !== undefined)
    throw new OxbowError(
      'arguments_denied',
      `${tool.name} may not run with the edited arguments (${denied.rule}): ${denied.reason} Nothing was decided.`,
    )
  if (rule !== undefined) await checkRemembered(rule, call)
  const { origin } = tool
  return {
    decision: {
      ...decision,
      ...('given' in parsed && { arguments: parsed.given }),
      ...(rule !== undefined && { remember: { ...rule, ...defined({ origin }) } }),
    },
    late,
  }
}

async function checkEdited(edited: Readonly<Record<string, unknown>>, tool: Tool) {
  const parsed = await parseArguments(stringifyExact(edited), tool)
  if (parsed.ok) return parsed
  throw new OxbowError(
    'arguments_invalid',
    `The edited arguments do not fit ${tool.name}: ${parsed.problem}. Nothing was decided.`,
  )
}

/**
 * Stores a decision that `checkDecision` gave. Returns its turn, or undefined when its time was over, which is stored
 * instead.
 *
 * @throws OxbowError when another decision was stored first
 */
export function resolveApproval(draft: Draft, deciding: DecisionAttempt): string | undefined {
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
    ...defined({ reason }),
    ...(edited !== undefined && { arguments: { ...edited } }),
    ...(rule !== undefined && { remember: { ...rule } }),
  })
  return turnId
}

export const approvalExpired = (): OxbowError =>
  new OxbowError('approval_expired', 'The time to decide on this has run out.', { details: { verdict: 'expired' } })

/**
 * A rule may be accepted only if it covers what is approved, no more tools than its own, and will let such calls run.
 */
async function checkRemembered({ rule: text, scope }: Remember, call: GateRequest): Promise<void> {
  const invalid = (what: string) =>
    new OxbowError('rule_invalid', `permission rule ${JSON.stringify(text)}: ${what}. Nothing was decided.`)
  const { tool, policy } = call
  const rule = parseRule(text)
  const covers = await matchesCall(rule, 'allow', tool, call.arguments, { mode: policy.mode })
  if (rule.tool !== tool.name || covers !== true) throw invalid(`it does not cover this call of ${tool.name}`)
  const { decision, rule: stronger } = await authorise({
    ...call,
    policy: withRemembered(policy, ...forScope(scope, rule)),
  })
  if (decision !== 'allow') throw invalid(`it could not let such a call run, because ${stronger} is stronger`)
}

const forScope = (scope: Remember['scope'], rule: Rule): [Rule[], Rule[]] =>
  scope === 'session' ? [[rule], []] : [[], [rule]]
