// The durable work inside one call: steps, sleeps and signals, folded from the journal by their position.
import type { Event } from '../events/types.ts'
import type { CallState, TurnState } from './state.ts'
import type { WorkEnd, WorkState } from './work-state.ts'

/** Sleeps, and waits for a signal, that have not ended. A call has at most one. */
export const waitOf = ({ work, finished }: CallState): WorkState | undefined =>
  finished === undefined ? work?.find((it) => it.kind !== 'step' && it.ended === undefined) : undefined

/** When the first of the turn's waits is over; undefined when none has a time. */
export function wakesAt({ calls }: TurnState): number | undefined {
  const times = calls.flatMap((call) => waitOf(call)?.wakeAt ?? [])
  return times.length === 0 ? undefined : Math.min(...times)
}

type Started = Event<'work.started'>
type Finished = Event<'work.finished'>
type Received = Event<'signal.received'>

export function workStarted(turn: TurnState, event: Started): TurnState {
  const { callId, position, name, kind, attempt, wakeAt } = event
  const started: WorkState = { name, kind, attempt, ...(wakeAt !== undefined && { wakeAt }) }
  const next = withWork(turn, callId, position, () => started)
  return kind === 'signal' ? delivered(next) : next
}

export function workFinished(turn: TurnState, { callId, position, end }: Finished): TurnState {
  return resumed(
    withWork(turn, callId, position, (it) => (it === undefined || it.ended !== undefined ? it : { ...it, ended: end })),
  )
}

/** A signal belongs to the first call that waits for it; without one it is kept for the next that does. */
export function signalReceived(turn: TurnState, { signalId, name, value }: Received): TurnState {
  const known = turn.signalIds?.includes(signalId)
  if (known === true) return turn
  const signals = [...(turn.signals ?? []), { signalId, name, value }]
  return delivered({ ...turn, signals, signalIds: [...(turn.signalIds ?? []), signalId] })
}

function delivered(turn: TurnState): TurnState {
  for (const signal of turn.signals ?? [])
    for (const call of turn.calls) {
      const position = call.work?.findIndex(
        (it) => it.kind === 'signal' && it.name === signal.name && it.ended === undefined,
      )
      if (position === undefined || position === -1 || call.finished !== undefined) continue
      const rest = { ...turn, signals: turn.signals!.filter((it) => it !== signal) }
      const ended: WorkEnd = { status: 'success', value: signal.value }
      return delivered(resumed(withWork(rest, call.callId, position + 1, (it) => it && { ...it, ended })))
    }
  return turn
}

/** A pause that waited for work is over; a person's pause and a parked turn are not. */
function resumed(turn: TurnState): TurnState {
  const { paused, ...rest } = turn
  if (paused === undefined || paused.reason === 'manual' || paused.reason === 'recovery_limit')
    return { ...turn, recoveries: 0 }
  return { ...rest, recoveries: 0 }
}

function withWork(
  turn: TurnState,
  callId: string,
  position: number,
  change: (it: WorkState | undefined) => WorkState | undefined,
): TurnState {
  const calls = turn.calls.map((call) => {
    if (call.callId !== callId) return call
    const work = [...(call.work ?? [])]
    const changed = change(work[position - 1])
    if (changed !== undefined) work[position - 1] = changed
    return { ...call, work }
  })
  return { ...turn, calls }
}
