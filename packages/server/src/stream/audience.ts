// The watchers of each turn. A turn that a client started here is stopped after a short grace when its last watcher
// leaves. Other watchers also keep such a turn alive; a turn that started elsewhere is never stopped.
import type { Session } from '@oxbow/core'
import { CLIENT_LEFT } from '../failures.ts'

export interface Audience {
  /**
   * Registers a watcher of a turn: its starter, a client that may have started it and reconnected, or anybody else.
   * Call the result when the watcher leaves; repeated calls are safe. `over`: the turn needs no watcher any more.
   */
  enter(session: Session, turnId: string, as?: 'starter' | 'reconnected' | 'watcher'): (over: boolean) => void
  /** Stops the turns that are within their grace. Watchers that leave later stop nothing: the service shuts down. */
  close(): Promise<void>
}

interface Watched {
  watchers: number
  /** Whether a watcher started the turn. */
  asked: boolean
  grace: NodeJS.Timeout | undefined
}

const MAX_REMEMBERED = 10_000

export function audience(options: {
  readonly onDisconnect: 'stop' | 'continue'
  readonly disconnectGraceMs: number
  readonly onError: (error: unknown) => void
}): Audience {
  const turns = new Map<string, Watched>()
  /** Turns that started here: after a pause the client reconnects to its turn. */
  const started = new Set<string>()
  const stops = new Map<string, () => Promise<void>>()
  let closed = false

  const remember = (name: string): void => {
    started.delete(name)
    started.add(name)
    if (started.size > MAX_REMEMBERED) started.delete(started.values().next().value!)
  }

  return {
    enter(session, turnId, as = 'starter') {
      const { tenant, user, session: id } = session.key
      const name = JSON.stringify([tenant, user, id, turnId])
      const turn = turns.get(name) ?? { watchers: 0, asked: false, grace: undefined }
      turns.set(name, turn)
      turn.watchers += 1
      if (as === 'starter') remember(name)
      if (as !== 'watcher' && started.has(name)) turn.asked = true
      clearTimeout(turn.grace)
      stops.delete(name)
      let here = true

      return (over) => {
        if (!here) return
        here = false
        turn.watchers -= 1
        if (turn.watchers > 0) return
        turns.delete(name)
        if (over || closed || !turn.asked || options.onDisconnect === 'continue') return
        const stop = async (): Promise<void> => {
          clearTimeout(turn.grace)
          if (stops.get(name) !== stop) return
          stops.delete(name)
          turns.delete(name)
          await session.interrupt({ turnId, reason: CLIENT_LEFT }).catch(options.onError)
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
