// Whether a turn has used up its budget.
import type { Budget } from '../agents/limits.ts'
import type { Failure, Usage } from '../events/types.ts'
import { type CallState, countOf, type TurnState, tokensOf } from '../state/state.ts'
import type { Tool } from '../tools/tool.ts'

/** Why the model must not be called again for this turn. */
export function overBudget(turn: TurnState, budget: Budget): Failure | undefined {
  const { toolCalls } = budget
  if (toolCalls !== undefined && turn.callCount >= toolCalls)
    return budgetSpent(`${turn.callCount} of ${toolCalls} tool calls are used`)
  return overUsage(turn.usage, budget)
}

/** The usage of models. */
function overUsage(usage: Usage, { tokens, money, price }: Budget): Failure | undefined {
  const used = tokensOf(usage)
  if (tokens !== undefined && used >= tokens) return budgetSpent(`${used} of ${tokens} tokens are used`)
  if (money === undefined || used === 0) return undefined
  const cost = price === undefined ? usage.cost : costAt(price, usage)
  if (cost === undefined)
    return budgetSpent(
      'the price of its model is not known, so that its limit of money cannot be kept: set limits.budget.price',
    )
  return cost >= money ? budgetSpent(`${cost.toFixed(4)} of ${money} US dollars are spent`) : undefined
}

const costAt = (price: { readonly input: number; readonly output: number }, usage: Usage): number =>
  ((tokensOf(usage) - usage.outputTokens) * price.input + usage.outputTokens * price.output) / 1_000_000

/** Why this call must not run. `startedElsewhere`: agents that other members of the turn's tree have started. */
export function overBudgetForCall(
  turn: TurnState,
  { position }: Pick<CallState, 'position'>,
  tool: Tool,
  tools: ReadonlyMap<string, Tool>,
  budget: Budget,
  startedElsewhere = 0,
): Failure | undefined {
  const { toolCalls, children } = budget
  const before = turn.callCount - turn.calls.length + position
  if (toolCalls !== undefined && before >= toolCalls)
    return budgetSpent(`${before} of ${toolCalls} tool calls are used`)
  const spent = overUsage(turn.usage, budget)
  if (spent !== undefined || children === undefined || !tool.effects.includes('delegate')) return spent
  const started = [...tools.values()]
    .filter((it) => it.effects.includes('delegate'))
    .reduce((sum, it) => sum + countOf(turn.begun, it.name), startedElsewhere)
  return started >= children ? budgetSpent(`${started} of ${children} agents have been started`) : undefined
}

const budgetSpent = (what: string): Failure => ({
  code: 'budget_exceeded',
  message: `The turn was stopped by its budget: ${what}.`,
})
