import { setTimeout as delay } from 'node:timers/promises'

/**
 * Waits until a condition returns something truthy, and returns that. The condition is polled every few milliseconds;
 * one that throws counts as not yet. Where there is a promise, await that instead.
 *
 * Rejects after `deadlineMs` (default 5000), with the condition's last error as cause.
 *
 * @example
 * const [first] = await until(() => server.requests.length > 0 && server.requests)
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  { deadlineMs = 5_000 }: { readonly deadlineMs?: number } = {},
): Promise<Exclude<T, false | null | undefined | 0 | ''>> {
  const end = performance.now() + deadlineMs
  let cause: unknown
  do {
    try {
      const value = await condition()
      if (value) return value as Exclude<T, false | null | undefined | 0 | ''>
      cause = undefined
    } catch (error) {
      cause = error
    }
    await delay(5)
  } while (performance.now() < end)
  throw new Error(`not true within ${deadlineMs} ms: ${condition.toString()}`, { cause })
}
