// Messages between the parts of one process.
import type { Bus } from '@oxbow/core'

/** A subscriber that throws ends nothing for the others; its error is one of the program. */
export function localBus(): Bus {
  const topics = new Map<string, Set<(message: string) => void>>()
  return {
    lagMs: () => undefined,
    publish(topic, message) {
      for (const receive of topics.get(topic) ?? []) queueMicrotask(() => receive(message))
    },
    subscribe(topic, receive) {
      const own = (message: string): void => {
        if (topics.get(topic)?.has(own)) receive(message)
      }
      const receivers = topics.get(topic) ?? new Set()
      topics.set(topic, receivers.add(own))
      return () => {
        receivers.delete(own)
        if (receivers.size === 0 && topics.get(topic) === receivers) topics.delete(topic)
      }
    },
  }
}
