// Whether an unrecognised refusal may mean that the conversation is too long.
import { ModelError, type ModelRequest } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'

interface Length {
  /** Token estimates of the request and of the longest request answered so far. */
  readonly tokens: number
  readonly answered: number
  readonly window: number | undefined
}

/** A request of this many tokens counts as long when the window is unknown. */
const LONG = 16_000

/**
 * Providers refuse requests that are too long with messages that no list covers fully. A bare refusal of a long
 * conversation that worked before counts as context overflow, so that the conversation is compacted once. If the retry
 * fails too, the provider's message is in the error.
 */
export function mayBeTooLong(
  { code, status, details, partial }: ModelError,
  request: ModelRequest,
  length: Length,
): boolean {
  if (code !== 'invalid_request' || status !== 400 || details?.at !== undefined || partial !== undefined) return false
  const { tokens, answered, window } = length
  const isLong = tokens > (window === undefined ? LONG : window / 2)
  return isLong && tokens > answered && request.messages.some((it) => it.role === 'assistant')
}

export const tooLong = (model: string, error: ModelError): ModelError =>
  new ModelError('context_overflow', `The conversation may be longer than ${model} can read. ${error.message}`, {
    ...defined({ status: error.status, details: error.details }),
    cause: error,
  })
