// Finds an approval: in the session's state while its step is open, and in the journal afterwards.
import {
  type Delegation,
  type Engine,
  type Event,
  openApprovals,
  type Principal,
  type Session,
  type SessionKey,
  type SessionState,
} from '@oxbow/core'

export interface FoundApproval {
  readonly requested: Event<'approval.requested'>
  /** Missing while the approval is open. */
  readonly resolved: Event<'approval.resolved'> | undefined
  /** The outcome of the call. */
  readonly finished: Event<'call.finished'> | undefined
  /** The principal of the turn. */
  readonly asker: Principal
  /** Present when a sub-agent asked, below the session that the user knows. */
  readonly source: Source | undefined
}

export interface Source {
  /** The root session, and the session of the call. */
  readonly rootSessionId: string
  readonly sessionId: string
  /** From the root agent to the one that asked. */
  readonly agents: readonly string[]
}

export function sourceOf(
  key: SessionKey,
  agent: string,
  { origin }: Event<'approval.requested'>,
  delegation: Delegation | undefined,
): Source | undefined {
  if (origin === undefined && delegation === undefined) return undefined
  const { ancestors } = delegation ?? { ancestors: [] }
  return {
    rootSessionId: ancestors[0]?.session ?? key.session,
    sessionId: origin?.session ?? key.session,
    agents: origin?.agents ?? [...ancestors.map((it) => it.agent), agent],
  }
}

/** Whether the parent call waits for this one and asks in its place: the approval is then found there. */
export async function risesFrom(engine: Engine, key: SessionKey, { turn }: SessionState): Promise<boolean> {
  const parent = turn?.delegation?.ancestors.at(-1)
  if (turn === undefined || parent === undefined) return false
  const above = await engine.session({ ...key, session: parent.session }).state()
  const record = above.children.find((it) => it.childTurnId === turn.turnId)
  return (
    record?.background === false &&
    above.turn?.calls.some((it) => it.callId === record.callId && it.finished === undefined) === true
  )
}

const PAGE = 500

/** An approval of the running turn. */
export const openFound = (
  key: SessionKey,
  state: SessionState,
  requested: Event<'approval.requested'>,
): FoundApproval => ({
  requested,
  resolved: undefined,
  finished: undefined,
  asker: state.turn!.principal,
  source: sourceOf(key, state.agent, requested, state.turn!.delegation),
})

/** Searches backwards: requested approvals are rarely old. */
export async function findApproval(
  session: Session,
  state: SessionState,
  approvalId: string,
): Promise<FoundApproval | undefined> {
  const open = openApprovals(state.turn).find((it) => it.approvalId === approvalId)
  if (open !== undefined) return openFound(session.key, state, open)
  let resolved: FoundApproval['resolved']
  let requested: FoundApproval['requested'] | undefined
  const finished = new Map<string, Event<'call.finished'>>()
  for (let end = state.seq; end > 0; end -= PAGE) {
    const page = (await session.events(Math.max(0, end - PAGE))).filter((it) => it.seq <= end)
    for (const event of page.toReversed()) {
      if (event.type === 'approval.resolved' && event.approvalId === approvalId) resolved = event
      else if (event.type === 'call.finished') finished.set(event.callId, event)
      else if (event.type === 'approval.requested' && event.approvalId === approvalId) requested = event
      else if (event.type === 'turn.started' && event.turnId === requested?.turnId)
        return {
          requested,
          resolved,
          finished: finished.get(requested.callId),
          asker: event.principal,
          source: sourceOf(session.key, event.agent.name, requested, event.delegation),
        }
    }
  }
  return undefined
}
