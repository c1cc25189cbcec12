// The number of turns that one principal may have running.
import type { Principal, RunningTurn } from '@oxbow/core'
import { HttpError } from '../../http/errors.ts'
import { nameOfPerson } from '../refresh.ts'

export interface TurnSlots {
  /**
   * Call the result when the turn ends or pauses; undefined when there is no limit. A retry of the same turn takes no
   * second slot.
   *
   * @throws HttpError 429 `too_many_turns`
   */
  take(principal: Principal, session: RunningTurn['key'], turnId: string): (() => void) | undefined
}

/**
 * @param running the turns that the engine works on. A turn that resumes after a pause counts again without a slot: it
 * is never refused, but no other turn may start beyond the limit
 */
export function turnSlots(max: number, running: () => readonly RunningTurn[]): TurnSlots {
  /** By principal: turns, and the number of requests that hold each. */
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
