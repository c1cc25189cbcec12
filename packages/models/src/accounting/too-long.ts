// Whether a refusal may mean that the conversation is too long, where the provider's words do not say so.
import { ModelError, type ModelRequest } from '@oxbow/core'

interface Length {
  /** Of the request, estimated, and of the longest that was answered. */
  readonly tokens: number
  readonly answered: number
  readonly window: number | undefined
}

/** Without a known window a request of this many tokens is long. */
const LONG = 16_000

/**
 * Providers refuse a request that is too long in words that no list has in full. A bare refusal of a long conversation that
 * has worked before counts as one, so that it is compacted once; should it fail again, the provider's words are there.
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
    ...(error.status !== undefined && { status: error.status }),
    ...(error.details !== undefined && { details: error.details }),
    cause: error,
  })
