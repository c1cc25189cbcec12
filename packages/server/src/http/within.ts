import type { AppContext } from './route.ts'

/** Passes `work` a signal that fires after `ms` or when the caller disconnects. */
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
