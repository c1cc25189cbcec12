// What a tree of turns has used up: the limits of its root apply to all of its members together.

import type { Agent } from '../agents/agent-type.ts'
import type { Budget } from '../agents/limits.ts'
import type { EngineInternals } from '../engine-internals.ts'
import type { Spent } from '../events/types.ts'
import type { SessionLog } from '../journal/session-log.ts'
import type { SessionKey } from '../ports.ts'
import { addSpent, addUsage, type ChildRecord, nothingSpent, spentBy, type TurnState } from '../state/state.ts'

/** Of a turn, its children that have ended, and those that have not. */
async function spentIn(engine: EngineInternals, key: SessionKey, turnId: string, except?: string): Promise<Spent> {
  const { spent, open } = await engine.withCurrentLog(key, async (log) => {
    const { turn, outlived, undelivered, children } = log.state
    const own = turn?.turnId === turnId ? (turnId === except ? turn.below : spentBy(turn)) : undefined
    const ended = [...outlived, ...undelivered].find((it) => it.turnId === turnId)?.spent
    return { spent: own ?? ended ?? nothingSpent, open: children.filter((it) => isOpenIn(turnId, it)) }
  })
  let sum = spent
  for (const { session, childTurnId } of open)
    sum = addSpent(sum, await spentIn(engine, { ...key, session }, childTurnId, except))
  return sum
}

/** The usage of all other turns in the tree. Undefined for a turn without a tree. */
export async function spentElsewhere(
  engine: EngineInternals,
  key: SessionKey,
  { turnId, delegation, childCount }: TurnState,
): Promise<Spent | undefined> {
  if (delegation === undefined && childCount === 0) return undefined
  const root = delegation?.ancestors[0]
  return spentIn(engine, { ...key, session: root?.session ?? key.session }, root?.turnId ?? turnId, turnId)
}

const isOpenIn = (turnId: string, it: ChildRecord): boolean => it.turnId === turnId && it.closed === undefined

export interface SharedBudget {
  /** The turn as if it had used up all that its tree has. */
  readonly turn: TurnState
  readonly budget: Budget
  /** Agents that other members of the tree have started. */
  readonly started: number
}

/**
 * What the turn's tree has used up, and may. Undefined for a turn without parent and children: its own figures are all.
 */
export async function sharedBudget(run: {
  readonly engine: EngineInternals
  readonly log: SessionLog
  readonly agent: Agent
  turn(): TurnState
}): Promise<SharedBudget | undefined> {
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
