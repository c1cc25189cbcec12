// The gate that every call passes. One order, always on:
// permission id > deny rules > ask rules > mandatory approval and the tool's own check > mode > allow rules > default.
// A call that another agent delegated also passes the policy of each agent above; the strictest verdict holds.

import { grants } from '../authority.ts'
import type { Delegation, Principal } from '../events/types.ts'
import type { TurnState } from '../state/state.ts'
import { EFFECTS } from '../tools/effect.ts'
import type { Mode } from '../tools/mode.ts'
import { type DecisionContext, onlyReads, type RuleKind, type Tool, type ToolVerdict } from '../tools/tool.ts'
import { forbidsAll, isFault, type MatchAnswer, matchesCall, parseRule, type Rule } from './rules.ts'

export interface Verdict {
  readonly decision: 'allow' | 'ask' | 'deny'
  /** The reason for the decision: a rule as written, a mode, or a built-in such as `default:read`. */
  readonly rule: string
  readonly reason: string
}

export interface Policy {
  readonly mode: Mode
  readonly deny: readonly Rule[]
  readonly ask: readonly Rule[]
  readonly allow: readonly Rule[]
  /** The policies of the agents above, the root first. */
  readonly above?: readonly PolicyAbove[]
}

/** The policy of an agent for those that work for it. */
export interface PolicyAbove extends Omit<Policy, 'above'> {
  readonly agent: string
  readonly effects: ReadonlySet<string>
}

export interface GateRequest {
  readonly tool: Tool
  /** Parsed, coerced and validated. */
  readonly arguments: Readonly<Record<string, unknown>>
  readonly principal: Principal
  readonly policy: Policy
}

/** Judges one call. In `dont-ask`, of this agent or of one above it, no answer is `ask`, without exception. */
export async function authorise(request: GateRequest): Promise<Verdict> {
  let strictest = await authoriseUnder(request)
  for (const above of request.policy.above ?? []) {
    const under = await authoriseUnder({ ...request, policy: above })
    // A rule that names the tool says more than what the agent cannot do at all.
    const verdict = severity(under) === FINAL ? under : (beyond(above, request.tool) ?? under)
    if (severity(verdict) <= severity(strictest)) continue
    strictest = { ...verdict, reason: `${verdict.reason} So it is for ${above.agent}, which gave the task.` }
  }
  return strictest
}

/** A denial that no approval can lift is the strictest of all. */
const severity = ({ decision, rule }: Verdict): number =>
  decision === 'allow' ? 0 : decision === 'ask' ? 1 : rule === DONT_ASK ? 2 : FINAL
const FINAL = 3

function beyond({ effects }: PolicyAbove, tool: Tool): Verdict | undefined {
  const missing = tool.effects.filter((it) => EFFECTS[it].reachesWorld && !effects.has(it))
  if (missing.length === 0) return undefined
  return deny(`effects:${missing.join(',')}`, `The tool can ${missing.join(', ')}.`)
}

const DONT_ASK = 'mode:dont-ask'

async function authoriseUnder(request: GateRequest): Promise<Verdict> {
  const verdict = await verdictOf(request)
  const { tool, policy } = request
  if (verdict.decision !== 'ask') return verdict
  if (policy.mode === 'explore' && !onlyReads(tool)) return unexplored(tool)
  if (policy.mode === 'dont-ask')
    return deny(DONT_ASK, `It would have to ask (${verdict.rule}), and no one can answer.`)
  return verdict
}

const unexplored = (tool: Tool): Verdict =>
  deny('mode:explore', `Only reading is allowed, and the tool can ${beyondReading(tool)}.`)

/** Why a call must not run although a person has approved it; undefined when it may. */
export async function denialOf(request: GateRequest): Promise<Verdict | undefined> {
  const verdict = await authorise(request)
  // A person was available after all.
  return verdict.decision === 'deny' && verdict.rule !== DONT_ASK ? verdict : undefined
}

/** An agent's policy, narrowed by the options of the turn and by the agents above it. */
export function policyOf(policy: Policy, { options, delegation }: Pick<TurnState, 'options' | 'delegation'>): Policy {
  const { mode, deny } = options
  if (mode === undefined && deny === undefined && delegation === undefined) return policy
  return {
    ...policy,
    mode: mode ?? policy.mode,
    deny: [...policy.deny, ...(deny ?? []).map(parseRule)],
    ...(delegation && { above: delegation.ancestors.map(policyAbove) }),
  }
}

const policyAbove = ({ agent, mode, deny, ask, allow, effects }: Delegation['ancestors'][number]): PolicyAbove => ({
  agent,
  mode,
  deny: deny.map(parseRule),
  ask: ask.map(parseRule),
  allow: allow.map(parseRule),
  effects: new Set(effects),
})

/** Whether there can be a call of this tool that no permission id and no deny rule of this very agent forbids. */
export const mayEverRun = (tool: Tool, { permissions = [] }: Principal, { deny: rules }: Policy): boolean =>
  (tool.permission === undefined || grants(permissions, tool.permission)) &&
  !rules.some((rule) => forbidsAll(rule, tool))

/** Approvals are disabled, by this agent or by one above it. */
export const asksNobody = ({ mode, above = [] }: Policy): boolean =>
  [{ mode }, ...above].some((it) => it.mode === 'dont-ask')

/** All deny rules that hold, as texts. */
export const denyTexts = ({ deny, above = [] }: Policy): string[] => [
  ...new Set([{ deny }, ...above].flatMap((it) => it.deny.map((rule) => rule.text))),
]

/**
 * With rules that people accepted: those of this session for this agent only, the others as they would hold anywhere.
 */
export const withRemembered = (policy: Policy, session: readonly Rule[], shared: readonly Rule[]): Policy => ({
  ...policy,
  allow: [...policy.allow, ...session, ...shared],
  ...(policy.above && { above: policy.above.map((it) => ({ ...it, allow: [...it.allow, ...shared] })) }),
})

async function verdictOf({ tool, arguments: input, principal, policy }: GateRequest): Promise<Verdict> {
  const { permission } = tool
  if (permission !== undefined && !grants(principal.permissions ?? [], permission))
    return deny(`permission:${permission}`, `${principal.user} lacks the permission ${permission}.`)

  const context: DecisionContext = { mode: policy.mode }
  const answers = async (kind: RuleKind) => {
    const found = policy[kind].map((rule) => matchesCall(rule, kind, tool, input, context))
    const settled = found.some((it) => it instanceof Promise) ? await Promise.all(found) : (found as MatchAnswer[])
    return settled.flatMap((answer, index) => (answer === false ? [] : [{ rule: policy[kind][index]!, answer }]))
  }
  const denying = await answers('deny')
  for (const { rule, answer } of denying) if (isFault(answer)) return deny(`deny:${rule.text}`, answer.fault)
  const denied = denying.find(({ answer }) => answer === true)?.rule
  if (denied !== undefined) return deny(`deny:${denied.text}`, 'A rule denies it.')
  const [asking] = await answers('ask')
  if (asking !== undefined) return ask(`ask:${asking.rule.text}`, 'A rule asks for approval.')
  if (tool.approval === 'always') return ask(`tool:${tool.name}`, 'This tool always needs an approval.')
  const own = await tool.check?.(input, context)
  const [perhaps] = denying
  if (perhaps !== undefined && own?.decision !== 'deny')
    return ask(`deny:${perhaps.rule.text}`, 'This rule may deny it: the tool cannot say whether the pattern matches.')
  if (own !== undefined) return checked(own, tool)

  const reads = onlyReads(tool)
  if (policy.mode === 'bypass') return allow('mode:bypass', 'Nothing holds it back.')
  if (policy.mode === 'explore' && !reads) return unexplored(tool)
  if (policy.mode === 'accept-edits' && tool.edits) return allow('mode:accept-edits', 'Edits are accepted.')
  const [allowed] = await answers('allow')
  if (allowed !== undefined) return allow(`allow:${allowed.rule.text}`, 'A rule allows it.')
  if (reads) return allow('default:read', 'The tool only reads.')
  return ask('default:ask', `The tool can ${beyondReading(tool)}, and no rule allows it.`)
}

function checked({ decision, reason }: ToolVerdict, { name }: Tool): Verdict {
  const rule = `check:${name}`
  if (decision === 'allow' || decision === 'ask' || decision === 'deny') return { decision, rule, reason }
  return deny(rule, `The check of ${name} gave no decision: ${JSON.stringify(decision)}.`)
}

const beyondReading = (tool: Tool): string => tool.effects.filter((it) => it !== 'read').join(', ')
const allow = (rule: string, reason: string): Verdict => ({ decision: 'allow', rule, reason })
const ask = (rule: string, reason: string): Verdict => ({ decision: 'ask', rule, reason })
const deny = (rule: string, reason: string): Verdict => ({ decision: 'deny', rule, reason })
