// Who watches which turn. When the last one has left, the turn is stopped after a short grace, or goes on.
import type { Session } from '@oxbow/core'

export interface Audience {
  /** Somebody watches a turn. Call the result once or more when they leave; `over` tells that the turn needs nobody. */
  enter(session: Session, turnId: string): (over: boolean) => void
  /** Stops at once what would be stopped after its grace. Who leaves from now on stops nothing: the service does. */
  close(): Promise<void>
}

interface Watched {
  watchers: number
  grace: NodeJS.Timeout | undefined
}

export function audience(options: {
  readonly onDisconnect: 'stop' | 'continue'
  readonly disconnectGraceMs: number
  readonly onError: (error: unknown) => void
}): Audience {
  const turns = new Map<string, Watched>()
  const stops = new Map<string, () => Promise<void>>()
  let closed = false

  return {
    enter(session, turnId) {
      const { tenant, user, session: id } = session.key
      const name = JSON.stringify([tenant, user, id, turnId])
      const turn = turns.get(name) ?? { watchers: 0, grace: undefined }
      turns.set(name, turn)
      turn.watchers += 1
      clearTimeout(turn.grace)
      stops.delete(name)
      let here = true

      return (over) => {
        if (!here) return
        here = false
        turn.watchers -= 1
        if (turn.watchers > 0) return
        turns.delete(name)
        if (over || closed || options.onDisconnect === 'continue') return
        const stop = async (): Promise<void> => {
          clearTimeout(turn.grace)
          if (stops.get(name) !== stop) return
          stops.delete(name)
          turns.delete(name)
          await session.interrupt({ turnId, reason: 'the client left' }).catch(options.onError)
        }
        turns.set(name, turn)
        stops.set(name, stop)
        turn.grace = setTimeout(stop, options.disconnectGraceMs)
      }
    },
    async close() {
      closed = true
      await Promise.all([...stops.values()].map((stop) => stop()))
    },
  }
}
