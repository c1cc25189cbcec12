// One request with one JSON document as its answer: not streamed, with the same timeouts, limits and errors.
import { ModelError, noUsage } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { wireJson } from '../requests/write.ts'
import type { ReplyAssembler } from './assembler.ts'
import { bearer } from './endpoint.ts'
import { type Endpoint, exchange } from './exchange.ts'

/** The headers of formats whose answers are documents. */
export const jsonBearer = (apiKey: string | undefined): Record<string, string> => ({
  accept: 'application/json',
  ...bearer(apiKey),
})

/** Rejects with a `ModelError`, at once when `signal` aborts. */
export async function postJson(endpoint: Endpoint, body: object, signal: AbortSignal): Promise<object> {
  let document: object | undefined
  const assembler: ReplyAssembler = {
    frame(value) {
      const { error } = value as { readonly error?: unknown }
      if (error) return { type: 'error', error }
      document = value
      return undefined
    },
    get complete() {
      return document !== undefined
    },
    mayEnd: false,
    ended: false,
    started: false,
    // The answer is the parsed document.
    reply: () => ({ blocks: [], finishReason: 'stop', usage: noUsage, model: '' }),
  }
  try {
    await exchange(endpoint, wireJson(body), assembler, signal)
  } catch (error) {
    throw error instanceof ModelError ? withoutWords(error) : error
  }
  return document!
}

/**
 * The same error without the provider's message in its own, which models and users see as the reason of a failed
 * search. The provider's message stays in `details`, for operators.
 */
function withoutWords(error: ModelError): ModelError {
  const { code, message, retryable, status, retryAfterMs, details, cause } = error
  const said = details?.said
  const end = ` Provider message: ${said}`
  if (typeof said !== 'string' || !message.endsWith(end)) return error
  return new ModelError(code, message.slice(0, -end.length), {
    retryable,
    ...defined({ status, retryAfterMs, details, cause }),
  })
}
