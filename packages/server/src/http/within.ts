import type { AppContext } from './route.ts'

/** Gives `work` a signal that fires when the time is over or the caller has left. */
export async function within(c: AppContext, ms: number, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const over = new AbortController()
  const timer = setTimeout(() => over.abort(), ms)
  const leave = (): void => over.abort()
  c.env.outgoing.once('close', leave)
  try {
    await work(over.signal)
  } finally {
    clearTimeout(timer)
    c.env.outgoing.off('close', leave)
  }
}
