// The events of one turn. A journal is read in pages, and turns overlap: the next one is accepted while one runs.
import type { Event } from '../events/types.ts'
import { findTurn, type SessionState } from './state.ts'

/**
 * The stored events of one turn, in order: up to its end, or to the end of the journal as `state` knows it. Nothing for
 * an id that has not been accepted. `until`: the last sequence number; events of children may follow the end of their
 * turn.
 *
 * @example
 * for await (const event of turnEvents((after) => session.events(after), await session.state(), turnId)) print(event)
 */
export async function* turnEvents(
  read: (after: number) => Promise<readonly Event[]>,
  state: SessionState,
  id: string,
  until?: number,
): AsyncGenerator<Event, void> {
  const known = findTurn(state, id)
  if (known === undefined) return
  const last = until ?? known.endedSeq
  for (let after = known.startedSeq - 1; after < last; ) {
    const page = await read(after)
    if (page.length === 0) return
    for (const event of page) {
      if (event.seq > last) return
      if (event.type !== 'session.opened' && event.turnId === known.turnId) yield event
    }
    after = page.at(-1)!.seq
  }
}
