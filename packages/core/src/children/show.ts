// Forwards a child's live items, with their origin, to followers of its parent. Nothing is stored twice: the events are
// in the child's journal.

import type { EngineInternals } from '../engine-internals.ts'
import { type Event, isEvent, type SessionItem } from '../events/types.ts'
import type { SessionLog } from '../journal/session-log.ts'
import { isEnd } from '../state/turn-result.ts'

/** `after`: the position in the child's journal to start from. Ends with the task, or with the process. */
export function showChild(
  engine: EngineInternals,
  parent: SessionLog,
  {
    session,
    agent,
    childTurnId,
    turnId,
    callId,
  }: Omit<Event<'child.opened'>, 'type' | 'seq' | 'at' | 'task' | 'background'>,
  step: number,
  child: SessionLog,
  after: number,
): void {
  if (engine.shown.has(childTurnId)) return
  engine.shown.add(childTurnId)
  const here = { agents: [parent.state.agent], sessions: [parent.key.session] }
  const publish = (item: SessionItem): void => {
    if (!isEvent(item) && item.type !== 'child.delta') return
    const inner = isEvent(item) ? { agents: [agent], sessions: [session] } : item.source
    const source = {
      agents: [...here.agents, ...inner.agents],
      sessions: [...here.sessions, ...inner.sessions],
    }
    parent.publish({ type: 'child.delta', turnId, step, callId, source, item: isEvent(item) ? item : item.item })
  }
  const reader = child.follow(after, { turnId: childTurnId })
  void (async () => {
    try {
      for await (const item of reader) {
        publish(item)
        if (isEvent(item) && isEnd(item)) return
      }
    } catch {
      // This process can no longer follow the child; readers of its session can.
    } finally {
      engine.shown.delete(childTurnId)
      await reader.return?.()
    }
  })()
}
