// Reads what a session has stored.
import type { Event, Session } from '@oxbow/core'

/**
 * The stored events of a session from the first on, or those of one type.
 *
 * @example expect(await eventsOf(session, 'call.finished')).toHaveLength(1)
 */
export function eventsOf(session: Pick<Session, 'events'>): Promise<Event[]>
export function eventsOf<T extends Event['type']>(session: Pick<Session, 'events'>, type: T): Promise<Event<T>[]>
export async function eventsOf(session: Pick<Session, 'events'>, type?: Event['type']): Promise<Event[]> {
  const all: Event[] = []
  for (;;) {
    const page = await session.events(all.at(-1)?.seq ?? 0)
    if (page.length === 0) return type === undefined ? all : all.filter((it) => it.type === type)
    all.push(...page)
  }
}
