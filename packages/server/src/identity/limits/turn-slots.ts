// How many turns somebody has running at the same time.
import type { Principal, RunningTurn } from '@oxbow/core'
import { HttpError } from '../../http/errors.ts'
import { nameOfPerson } from '../refresh.ts'

export interface TurnSlots {
  /**
   * Call the result when the turn has come to its end or its pause; there is none where nothing is limited. The same turn
   * again takes no second slot.
   *
   * @throws HttpError 429 `too_many_turns`
   */
  take(principal: Principal, session: RunningTurn['key'], turnId: string): (() => void) | undefined
}

/**
 * @param running turns that the engine works on. One that goes on after its pause counts again, though nobody holds a slot for
 * it: it always goes on, and no other may begin beside it that would be one too many
 */
export function turnSlots(max: number, running: () => readonly RunningTurn[]): TurnSlots {
  /** By principal: turns, and how many requests hold each. */
  const held = new Map<string, Map<string, number>>()

  return {
    take(principal, session, turnId) {
      if (max === 0) return undefined
      const who = nameOfPerson(principal)
      const turn = turnName(session, turnId)
      const turns = held.get(who) ?? new Map<string, number>()
      const theirs = running().filter((it) => nameOfPerson(it.principal) === who)
      const all = new Set([...turns.keys(), ...theirs.map((it) => turnName(it.key, it.turnId))])
      if (!all.has(turn) && all.size >= max)
        throw new HttpError(429, 'too_many_turns', `You already have ${max} turns running. Wait until one ends.`, {
          'retry-after': '5',
        })
      held.set(who, turns)
      turns.set(turn, (turns.get(turn) ?? 0) + 1)
      let here = true
      return () => {
        if (!here) return
        here = false
        const left = turns.get(turn)! - 1
        if (left > 0) turns.set(turn, left)
        else turns.delete(turn)
        if (turns.size === 0) held.delete(who)
      }
    },
  }
}

const turnName = ({ tenant, user, session }: RunningTurn['key'], turnId: string): string =>
  JSON.stringify([tenant, user, session, turnId])
