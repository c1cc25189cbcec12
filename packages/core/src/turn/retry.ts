// Asks the host again at longer and longer intervals.
import { setTimeout as delay } from 'node:timers/promises'
import { OxbowError } from '../errors.ts'

/** Whether an error says that the same attempt may succeed later. */
export const isUnavailable = (error: unknown): boolean => error instanceof OxbowError && error.retryable

const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 30_000

/** Asks until there is an answer, at longer and longer intervals. Rejects with the signal's reason when it fires. */
export async function askAgain<T>(ask: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
    await delay(wait, undefined, { signal, ref: false }).catch(() => {})
    signal.throwIfAborted()
    try {
      return await ask()
    } catch (error) {
      if (!isUnavailable(error)) throw error
    }
  }
}
