// What a turn may use up.
import type { Failure, Usage } from './events/types.ts'
import { type CallState, countOf, type TurnState, tokensOf } from './state.ts'
import type { Tool } from './tool.ts'

/** What one turn may use up; then it fails with `budget_exceeded`. Its time is `totalTimeoutMs`, with `total_timeout`. */
export interface Budget {
  /** Input and output of all model calls; checked before each of them. */
  readonly tokens?: number
  /** Calls of tools that the model asks for, refused ones too; checked before each of them, and before each model call. */
  readonly toolCalls?: number
  /** Other agents that are started: calls of tools with the effect `delegate`; checked before each of them. */
  readonly children?: number
  /** US dollars, or the currency of `price`; checked before each model call. */
  readonly money?: number
  /** Per million tokens. Default: the price that the model tells; needed for `money` where it tells none. */
  readonly price?: { readonly input: number; readonly output: number }
}

/** Why the model must not be called again for this turn. */
export function overBudget(turn: TurnState, { tokens, toolCalls, money, price }: Budget): Failure | undefined {
  const used = tokensOf(turn.usage)
  if (tokens !== undefined && used >= tokens) return budgetSpent(`${used} of ${tokens} tokens are used`)
  if (toolCalls !== undefined && turn.callCount >= toolCalls)
    return budgetSpent(`${turn.callCount} of ${toolCalls} tool calls are used`)
  if (money === undefined) return undefined
  const cost = price === undefined ? turn.usage.cost : costAt(price, turn.usage)
  if (cost === undefined)
    return budgetSpent('the price of its model is not known, so that its limit of money cannot be kept: set a price')
  return cost >= money ? budgetSpent(`${cost.toFixed(4)} of ${money} are spent`) : undefined
}

const costAt = (price: { readonly input: number; readonly output: number }, usage: Usage): number =>
  ((tokensOf(usage) - usage.outputTokens) * price.input + usage.outputTokens * price.output) / 1_000_000

/** Why this call must not run. `startedElsewhere`: agents that other members of the turn's tree have started. */
export function overBudgetForCall(
  turn: TurnState,
  { position }: Pick<CallState, 'position'>,
  tool: Tool,
  tools: ReadonlyMap<string, Tool>,
  { toolCalls, children }: Budget,
  startedElsewhere = 0,
): Failure | undefined {
  const before = turn.callCount - turn.calls.length + position
  if (toolCalls !== undefined && before >= toolCalls)
    return budgetSpent(`${before} of ${toolCalls} tool calls are used`)
  if (children === undefined || !tool.effects.includes('delegate')) return undefined
  const started = [...tools.values()]
    .filter((it) => it.effects.includes('delegate'))
    .reduce((sum, it) => sum + countOf(turn.begun, it.name), startedElsewhere)
  return started >= children ? budgetSpent(`${started} of ${children} agents have been started`) : undefined
}

const budgetSpent = (what: string): Failure => ({
  code: 'budget_exceeded',
  message: `The turn was stopped by its budget: ${what}.`,
})
