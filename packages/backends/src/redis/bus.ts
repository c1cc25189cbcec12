// Messages between replicas, over publish and subscribe: one channel, which every replica hears from its first use on, so
// that a new subscriber misses nothing.
import { randomUUID } from 'node:crypto'
import type { Bus } from '@oxbow/core'
import type { Redis } from 'ioredis'
import { localBus } from '../local/bus.ts'
import type { Server } from './server.ts'

export interface RedisBus extends Bus {
  readonly channel: string
  /** What `publish` would send, for scripts that send it themselves. */
  payload(topic: string, message: string): string
  /** Like `subscribe`, without the messages of this process. */
  subscribeToOthers(topic: string, receive: (message: string) => void, onGap: () => void): () => void
  /** Resolves when messages of other replicas arrive. */
  listening(): Promise<void>
}

export function redisBus(server: Server): RedisBus {
  const origin = randomUUID()
  const channel = server.key('bus')
  const here = localBus()
  const others = localBus()
  const gaps = new Set<() => void>()
  const state = Promise.withResolvers<void>()

  let lag: number | undefined
  const payload = (topic: string, message: string): string =>
    JSON.stringify([origin, topic, message, performance.now()])

  async function listen(): Promise<void> {
    const connection: Redis = await server.connect()
    connection.on('message', (_channel: string, text: string) => {
      const [from, topic, message, sentAt] = JSON.parse(text) as [string, string, string, number?]
      if (from === origin) {
        if (sentAt !== undefined) lag = performance.now() - sentAt
        return
      }
      here.publish(topic, message)
      others.publish(topic, message)
    })
    const subscribe = async () => {
      await connection.subscribe(channel)
      // What was sent before this moment, or while the connection was away, is lost.
      for (const it of gaps) it()
    }
    // A connection that breaks meanwhile is made anew, and this runs again.
    connection.on('ready', () => void subscribe().catch(() => {}))
    await subscribe()
  }
  listen().then(state.resolve, state.reject)
  state.promise.catch(() => {})

  const withGaps = (stop: () => void, onGap: (() => void) | undefined): (() => void) => {
    // One entry per subscription, also when several share a function.
    const own = onGap && (() => onGap())
    if (own) gaps.add(own)
    return () => {
      stop()
      if (own) gaps.delete(own)
    }
  }

  return {
    channel,
    payload,
    publish(topic, message) {
      if (server.ended) return
      here.publish(topic, message)
      // Fleeting by contract; appends report what is wrong with the server.
      server.run((redis) => redis.publish(channel, payload(topic, message))).catch(() => {})
    },
    subscribe: (topic, receive, onGap) => withGaps(here.subscribe(topic, receive), onGap),
    subscribeToOthers: (topic, receive, onGap) => withGaps(others.subscribe(topic, receive), onGap),
    listening: () => state.promise,
    lagMs: () => lag,
  }
}
