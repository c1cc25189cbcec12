// The judgement of one call: it runs, it waits for a person, or it is refused.

import { hash } from 'node:crypto'
import type { CallOutcome } from '../agents/middleware.ts'
import { isSamePerson, mayDecide } from '../authority.ts'
import { defined } from '../checks/defined.ts'
import type { ErrorCode } from '../errors.ts'
import type { EventBody, Principal } from '../events/types.ts'
import { authorise, denialOf, type Policy, policyOf, type Verdict, withRemembered } from '../permissions/gate.ts'
import { storeRememberedRule } from '../permissions/remembered.ts'
import { matchesCall, parseRule, type Rule } from '../permissions/rules.ts'
import type { ApprovalState, CallState } from '../state/state.ts'
import { type Arguments, parseAgain, parseArguments } from '../tools/arguments.ts'
import type { ApprovalRequest } from '../tools/needs-approval.ts'
import type { Tool } from '../tools/tool.ts'
import type { TurnRun } from '../turn/turn-run.ts'

type Decided = Extract<EventBody, { type: 'call.decided' }>
type Asks = Extract<EventBody, { type: 'approval.requested' }>

export type CallPermission =
  | {
      readonly decided: Decided
      readonly input: unknown
      /** For whom it runs. */
      readonly principal: Principal
      readonly asks?: Asks
    }
  /** `before` is stored together with the outcome. */
  | { readonly outcome: CallOutcome; readonly before: readonly EventBody[] }

export async function mayRun(run: TurnRun, call: CallState, tool: Tool): Promise<CallPermission> {
  if (call.approval?.resolved !== undefined) return useApproval(run, call, tool, call.approval)
  const parsed = await parseArguments(call.arguments, tool)
  if (!parsed.ok) return { outcome: refusal('invalid_arguments', parsed.message), before: [] }

  if (!(await run.refreshOldPrincipal())) {
    const why = `${run.principal.user} is no longer authorised.`
    const verdict = { decision: 'deny', rule: 'principal', reason: why } as const
    return denial(decidedOf(run, call, verdict, parsed.arguments), why, why)
  }
  const turn = run.turn()
  const policy = policyOf(run.agent.policy, turn)
  let verdict = await authorise({ tool, arguments: parsed.arguments, principal: run.principal, policy })
  if (verdict.decision === 'ask')
    verdict = await remembered(run, tool, parsed.arguments, run.principal, policy, verdict)
  const decided = decidedOf(run, call, verdict, parsed.arguments)
  if (verdict.decision === 'deny') return denial(decided, `Not allowed: ${verdict.reason}`, verdict.reason)
  const allowed = { decided, input: parsed.input, principal: run.principal }
  return verdict.decision === 'allow'
    ? allowed
    : { ...allowed, asks: await asksFor(run, call, tool, parsed.arguments, verdict) }
}

/**
 * An approval is good for one call and its exact arguments, and only as long as the call would not be denied by now.
 */
async function useApproval(
  run: TurnRun,
  call: CallState,
  tool: Tool,
  approval: ApprovalState,
): Promise<CallPermission> {
  const { requested, resolved } = approval
  const { verdict, arguments: edited, principal: approver, reason } = resolved!
  const rule = `approval:${requested.approvalId}`
  const refuse = (why: string, given: Arguments = requested.arguments): CallPermission =>
    denial(decidedOf(run, call, { decision: 'deny', rule, reason: why }, given), why, why)

  if (verdict === 'expired') return refuse('The approval expired without a decision.')
  if (verdict === 'denied') return refuse(`Refused by ${approver?.user ?? 'a person'}${reason ? `: ${reason}` : '.'}`)
  if (edited === undefined && digestOf(tool.name, requested.arguments) !== requested.digest)
    return refuse('The approval does not belong to these arguments.')
  const parsed =
    edited === undefined
      ? await parseAgain(call.arguments, requested.arguments, tool)
      : await parseArguments(JSON.stringify(edited), tool)
  if (!parsed.ok) return { outcome: refusal('invalid_arguments', parsed.message), before: [] }

  const turn = run.turn()
  if (!(await run.refreshPrincipal()))
    return refuse(`${turn.principal.user} is no longer authorised.`, parsed.arguments)
  const { principal } = run
  const gone = await lostApprover(run, approval)
  if (gone !== undefined) return refuse(gone, parsed.arguments)
  const policy = policyOf(run.agent.policy, turn)
  const denied = await denialOf({ tool, arguments: parsed.arguments, principal, policy })
  if (denied !== undefined) return refuse(denied.reason, parsed.arguments)
  await storeRememberedRule(run.files, run.log.key.tenant, turn.principal, resolved!)
  const by = `Approved by ${approver?.user ?? 'a person'}${edited === undefined ? '' : ', with other arguments'}.`
  const decided = decidedOf(run, call, { decision: 'allow', rule, reason: by }, parsed.arguments)
  return { decided, input: parsed.input, principal }
}

/** Why an approval no longer counts: its approver has lost the right. */
export async function lostApprover(run: TurnRun, { requested, resolved }: ApprovalState): Promise<string | undefined> {
  const asker = run.turn().principal
  const by = resolved?.principal
  // The caller's authorisation is checked in any case.
  if (resolved?.verdict !== 'approved' || by === undefined) return undefined
  if (requested.approver === undefined && isSamePerson(by, asker)) return undefined
  const now = await run.currentPrincipal(by)
  return now !== undefined && mayDecide(requested, now, asker)
    ? undefined
    : `${by.user}, who approved it, is no longer allowed to approve it.`
}

/**
 * Whether a call that was let through before a crash is denied by now. A person's or a remembered rule's yes still
 * counts.
 */
export async function mayRunAgain(run: TurnRun, call: CallState, tool: Tool, principal: Principal): Promise<boolean> {
  const turn = run.turn()
  const given = call.decided!.arguments
  const policy = policyOf(run.agent.policy, turn)
  const { decision } = await authorise({ tool, arguments: given, principal, policy })
  return decision !== 'deny'
}

/** Remembered rules are added to the agent's own allow rules; they cannot override ask or deny rules. */
async function remembered(
  run: TurnRun,
  tool: Tool,
  given: Arguments,
  principal: Principal,
  policy: Policy,
  verdict: Verdict,
): Promise<Verdict> {
  const { session, shared } = await run.rememberedRules(principal)
  if (session.length === 0 && shared.length === 0) return verdict
  const again = await authorise({
    tool,
    arguments: given,
    principal,
    policy: withRemembered(policy, session, shared),
  })
  return again.decision === 'allow' ? again : verdict
}

/** The running tool asks by itself. Nothing but the answer can come of it: no rule, and no other arguments. */
export function asksMeanwhile(
  { turnId, agent }: TurnRun,
  { callId }: CallState,
  tool: Tool,
  request: ApprovalRequest,
  attempt: number,
): Asks {
  const given = { ...request.arguments }
  const approver = request.approver ?? tool.approver
  const name = request.tool ?? tool.name
  return {
    type: 'approval.requested',
    turnId,
    approvalId: `approval_${callId.slice('call_'.length)}_${attempt}`,
    callId,
    tool: name,
    arguments: given,
    digest: digestOf(name, given),
    rule: `asks:${tool.name}`,
    reason: request.reason,
    // A rule is a choice only where the asking agent's gate can make use of it.
    suggestions: request.origin === undefined ? [] : [...(request.suggestions ?? [])],
    ...(request.scopes && { scopes: [...request.scopes] }),
    ...defined({ approver }),
    ...(request.origin && { origin: request.origin }),
    expiresAt: request.expiresAt ?? Date.now() + agent.limits.approvalTimeoutMs,
  }
}

async function asksFor(run: TurnRun, call: CallState, tool: Tool, given: Arguments, verdict: Verdict): Promise<Asks> {
  return {
    type: 'approval.requested',
    turnId: run.turnId,
    approvalId: `approval_${call.callId.slice('call_'.length)}`,
    callId: call.callId,
    tool: tool.name,
    arguments: given,
    digest: digestOf(tool.name, given),
    rule: verdict.rule,
    reason: verdict.reason,
    ...(await suggestionsFor(run, tool, given)),
    ...defined({ approver: tool.approver }),
    expiresAt: Date.now() + run.agent.limits.approvalTimeoutMs,
  }
}

/** Rules that would let such calls run. None where something stronger than any rule has asked. */
async function suggestionsFor(
  run: TurnRun,
  tool: Tool,
  given: Arguments,
): Promise<Pick<Asks, 'suggestions' | 'scopes'>> {
  const turn = run.turn()
  const policy = policyOf(run.agent.policy, turn)
  const whole = parseRule(tool.name)
  const allows = async (session: readonly Rule[], shared: readonly Rule[]): Promise<boolean> => {
    const allowed = withRemembered(policy, session, shared)
    const { decision } = await authorise({ tool, arguments: given, principal: run.principal, policy: allowed })
    return decision === 'allow'
  }
  if (!(await allows([], [whole]))) return { suggestions: [] }
  // The rules of a session apply to its own agent only; an agent above may still ask.
  const scopes: Pick<Asks, 'scopes'> = (await allows([whole], [])) ? {} : { scopes: ['user', 'project'] }
  // A tool that cannot read patterns can only be allowed as a whole.
  if (tool.matches === undefined) return { suggestions: [tool.name], ...scopes }
  const suggested: string[] = []
  for (const it of (await tool.suggest?.(given)) ?? []) {
    const rule = asRule(tool, it)
    if ((await matchesCall(rule, 'allow', tool, given, { mode: policy.mode })) === true) suggested.push(rule.text)
  }
  return { suggestions: suggested, ...(suggested.length > 0 && scopes) }
}

/** `suggest` returns patterns; a whole rule of its own tool is accepted too. */
const asRule = ({ name }: Tool, text: string): Rule =>
  parseRule(text === name || (text.startsWith(`${name}(`) && text.endsWith(')')) ? text : `${name}(${text})`)

const decidedOf = (run: TurnRun, call: CallState, verdict: Verdict, given: Arguments): Decided => ({
  type: 'call.decided',
  turnId: run.turnId,
  callId: call.callId,
  arguments: given,
  ...verdict,
})

const denial = (decided: Decided, text: string, reason: string): CallPermission => ({
  outcome: { status: 'denied', content: [{ type: 'text', text }], error: { code: 'denied', message: reason } },
  before: [decided],
})

export const refusal = (code: ErrorCode, message: string): CallOutcome => ({
  status: 'error',
  content: [{ type: 'text', text: message }],
  error: { code, message },
})

/** The same for the same call, whatever the order of its fields. */
export const digestOf = (tool: string, given: Arguments): string =>
  hash('sha256', JSON.stringify([tool, sorted(given)]))

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([name, it]) => [name, sorted(it)]))
}
