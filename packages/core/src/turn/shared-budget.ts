// The limits of the root hold for all that work for it together.

import { spentElsewhere } from '../children/spent.ts'
import { addUsage, type TurnState } from '../journal/state.ts'
import type { Budget } from './budget.ts'
import type { TurnRun } from './turn-run.ts'

export interface SharedBudget {
  readonly turn: TurnState
  readonly budget: Budget
  /** Agents that others have started. */
  readonly started: number
}

/** The turn as if it had used up all that its tree has, and what the tree may. Undefined for a turn that is no tree. */
export async function sharedBudget(run: TurnRun): Promise<SharedBudget | undefined> {
  const turn = run.turn()
  const elsewhere = await spentElsewhere(run.engine, run.log.key, turn)
  if (elsewhere === undefined) return undefined
  const budget = turn.delegation?.budget ?? run.agent.limits.budget
  return {
    turn: {
      ...turn,
      usage: addUsage(turn.usage, elsewhere.usage),
      callCount: turn.callCount + elsewhere.toolCalls,
    },
    budget: budget as Budget,
    started: elsewhere.children,
  }
}
