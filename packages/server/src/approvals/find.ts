// Finds an approval in its session: in the state while its step is open, in the journal afterwards.
import type { Event, Principal, Session, SessionState } from '@oxbow/core'

export interface Found {
  readonly requested: Event<'approval.requested'>
  /** Missing while somebody has to decide. */
  readonly resolved: Event<'approval.resolved'> | undefined
  /** What became of the call. */
  readonly finished: Event<'call.finished'> | undefined
  /** For whom the turn runs. */
  readonly asker: Principal
}

const PAGE = 500

/** Approvals that wait, in the order of their calls. */
export const openApprovals = ({ turn }: SessionState): Event<'approval.requested'>[] =>
  (turn?.calls ?? []).flatMap(({ approval, finished }) =>
    approval === undefined || approval.resolved !== undefined || finished !== undefined ? [] : [approval.requested],
  )

/** From the end on: what is asked for is rarely old. */
export async function findApproval(
  session: Session,
  state: SessionState,
  approvalId: string,
): Promise<Found | undefined> {
  const open = openApprovals(state).find((it) => it.approvalId === approvalId)
  if (open !== undefined)
    return { requested: open, resolved: undefined, finished: undefined, asker: state.turn!.principal }
  let resolved: Found['resolved']
  let requested: Found['requested'] | undefined
  const finished = new Map<string, Event<'call.finished'>>()
  for (let end = state.seq; end > 0; end -= PAGE) {
    const page = (await session.events(Math.max(0, end - PAGE))).filter((it) => it.seq <= end)
    for (const event of page.toReversed()) {
      if (event.type === 'approval.resolved' && event.approvalId === approvalId) resolved = event
      else if (event.type === 'call.finished') finished.set(event.callId, event)
      else if (event.type === 'approval.requested' && event.approvalId === approvalId) requested = event
      else if (event.type === 'turn.started' && event.turnId === requested?.turnId)
        return { requested, resolved, finished: finished.get(requested.callId), asker: event.principal }
    }
  }
  return undefined
}

/** The events of one turn, from the one after `startedAfter` on. */
export async function turnEvents(session: Session, turnId: string, startedAfter: number): Promise<Event[]> {
  const all: Event[] = []
  for (let at = startedAfter; ; ) {
    const page = await session.events(at)
    for (const it of page) if (it.type !== 'session.opened' && it.turnId === turnId) all.push(it)
    if (page.length < PAGE || all.some((it) => ENDS.has(it.type))) return all
    at = page.at(-1)!.seq
  }
}

const ENDS: ReadonlySet<string> = new Set(['turn.finished', 'turn.failed', 'turn.cancelled'])
