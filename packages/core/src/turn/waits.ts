// Sleeps and signal waits whose time is over.
import type { Draft } from '../journal/draft.ts'
import type { TurnState } from '../state/state.ts'
import { waitOf, wakesAt } from '../state/work.ts'

/** Ends them in the journal; the turn then needs a worker. */
export function endWaits(draft: Draft, now: number): void {
  const { turn } = draft.state
  for (const call of turn?.calls ?? []) {
    const wait = waitOf(call)
    if (wait?.wakeAt === undefined || wait.wakeAt > now) continue
    const end = { status: wait.kind === 'sleep' ? ('success' as const) : ('timed_out' as const) }
    const position = call.work!.indexOf(wait) + 1
    draft.add({ type: 'work.finished', turnId: turn!.turnId, callId: call.callId, position, end })
  }
}

export const hasWaits = (turn: TurnState | undefined): boolean => turn !== undefined && wakesAt(turn) !== undefined
