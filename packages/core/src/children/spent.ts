// What a whole tree has used up, for the limits that its members share.

import type { EngineInternals } from '../engine-internals.ts'
import type { Spent } from '../events/types.ts'
import { addSpent, type ChildRecord, nothingSpent, spentBy, type TurnState } from '../journal/state.ts'
import type { SessionKey } from '../ports.ts'

/** Of a turn, its children that have ended, and those that have not. */
async function spentIn(engine: EngineInternals, key: SessionKey, turnId: string, except?: string): Promise<Spent> {
  const { spent, open } = await engine.using(key, async (log) => {
    await log.catchUp()
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

/** What everybody else in the turn's tree has used up. Undefined for a turn that is no tree. */
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
