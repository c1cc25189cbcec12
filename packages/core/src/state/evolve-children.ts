// The part of the fold that concerns the sessions above and below this one.
import type { Event, Message } from '../events/types.ts'
import { addSpent, type ChildRecord, type SessionState, spentBy, type TurnState } from './state.ts'

export type FamilyEvent = Event<'child.opened' | 'child.detached' | 'child.closed' | 'result.delivered'>

export function withFamily(state: SessionState, event: FamilyEvent): SessionState {
  const change = (childTurnId: string, more: Partial<ChildRecord>): readonly ChildRecord[] =>
    state.children.map((it) => (it.childTurnId === childTurnId ? { ...it, ...more } : it))
  switch (event.type) {
    case 'child.opened': {
      const { type: _, seq: __, at: ___, ...record } = event
      const { turn } = state
      const children = [...state.children, record]
      if (turn?.turnId !== event.turnId) return { ...state, children }
      return { ...state, children, turn: { ...turn, childCount: turn.childCount + 1 } }
    }
    case 'child.detached':
      return { ...state, children: change(event.childTurnId, { background: true }) }
    case 'child.closed':
      return childClosed(
        {
          ...state,
          children: change(event.childTurnId, { closed: event.status }),
          // The figures of a session's last task include those of its earlier ones.
          ...(event.slots && { below: { ...state.below, [event.session]: event.slots } }),
        },
        event,
      )
    case 'result.delivered':
      return { ...state, undelivered: state.undelivered.filter((it) => it.turnId !== event.turnId) }
  }
}

/** The result joins the turn that runs, as a steering input does; without one it waits for the next. */
function childClosed(state: SessionState, event: Event<'child.closed'>): SessionState {
  const { turn, children } = state
  const { spent, turnId } = event
  const outlived = state.outlived
    .map((it) => (it.turnId === turnId ? { ...it, spent: addSpent(it.spent, spent) } : it))
    .filter((it) => children.some((child) => child.turnId === it.turnId && child.closed === undefined))
  const undelivered = state.undelivered.map((it) =>
    it.turnId === turnId ? { ...it, spent: addSpent(it.spent, spent) } : it,
  )
  const now = { ...state, outlived, undelivered }
  const result: Message[] =
    event.input === undefined
      ? []
      : [{ id: `${event.childTurnId}:result`, role: 'user', origin: 'agent', blocks: event.input }]
  if (turn === undefined) return { ...now, messages: [...state.messages, ...result] }
  const below = turn.turnId === turnId ? addSpent(turn.below, spent) : turn.below
  return { ...now, turn: { ...turn, below, steers: [...turn.steers, ...result] } }
}

/**
 * A stopped turn stops its children, and so does the end of a child, which could no longer receive their results.
 * Background children of any other turn continue.
 */
export function familyAfter(
  state: SessionState,
  turn: TurnState,
  { type }: Event<'turn.finished' | 'turn.failed' | 'turn.cancelled'>,
): Pick<SessionState, 'children' | 'outlived' | 'undelivered'> {
  const { turnId, delegation } = turn
  const isOpen = (it: ChildRecord): boolean => it.turnId === turnId && it.closed === undefined
  const stops = type !== 'turn.finished' || delegation !== undefined
  const spent = spentBy(turn)
  return {
    children: stops ? state.children.map((it) => (isOpen(it) ? { ...it, stopped: true } : it)) : state.children,
    outlived: state.children.some(isOpen) ? [...state.outlived, { turnId, spent }] : state.outlived,
    undelivered: delegation === undefined ? state.undelivered : [...state.undelivered, { turnId, delegation, spent }],
  }
}
