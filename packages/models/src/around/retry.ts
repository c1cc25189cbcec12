// How long to wait before a retry, and when not to retry.
import { setTimeout as sleep } from 'node:timers/promises'
import { ModelError } from '@oxbow/core'
import { COUNT, checkNumbers } from '../check-numbers.ts'

export interface RetryOptions {
  /** Requests to one model for one answer. Default 3. */
  readonly attempts?: number
  /** The wait before the second request is up to this, in milliseconds, then up to twice as much … Default 500. */
  readonly baseMs?: number
  /** The longest delay, even if the provider asks for more: then the next model is tried. Default 30,000. */
  readonly maxMs?: number
}

export interface Retrying {
  readonly signal: AbortSignal
  readonly retry?: RetryOptions
  readonly mayRetry?: (error: ModelError) => boolean
  readonly onFailedAttempt?: (error: ModelError, waitMs: number) => void
}

/** @throws OxbowError `model_config` */
export const checkRetry = (of: string, { attempts, baseMs, maxMs }: RetryOptions = {}): void =>
  checkNumbers(of, {
    'retry.attempts': [attempts, COUNT],
    'retry.baseMs': [baseMs, { least: 0 }],
    'retry.maxMs': [maxMs, { least: 0 }],
  })

/** Retries until there is an answer or an error that rules out a retry. Rejects with that error. */
export async function retrying<Answer>(
  ask: () => Promise<Answer>,
  { signal, retry = {}, mayRetry = ({ retryable }) => retryable, onFailedAttempt }: Retrying,
): Promise<Answer> {
  const { attempts = 3, baseMs = 500, maxMs = 30_000 } = retry
  for (let attempt = 1; ; attempt++) {
    let fault: ModelError
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof ModelError) || !mayRetry(error) || attempt >= attempts) throw error
      // The delay that the provider asks for is not randomised.
      if ((error.retryAfterMs ?? 0) > maxMs) throw error
      fault = error
    }
    const backoffMs = Math.random() * Math.min(maxMs, baseMs * 2 ** (attempt - 1))
    const waitMs = Math.round(Math.max(fault.retryAfterMs ?? 0, backoffMs))
    onFailedAttempt?.(fault, waitMs)
    try {
      await sleep(waitMs, undefined, { signal })
    } catch {
      throw new ModelError('cancelled', 'The model call was cancelled before its retry.')
    }
  }
}
