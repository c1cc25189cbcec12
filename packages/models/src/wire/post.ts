// One request with one JSON document as its answer: no stream, the same clocks, limits and errors.
import { ModelError, noUsage } from '@oxbow/core'
import { wireJson } from '../requests/write.ts'
import type { ReplyAssembler } from './assembler.ts'
import { bearer } from './endpoint.ts'
import { type Endpoint, exchange } from './exchange.ts'

/** The headers of a format whose answers are documents. */
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
    // What is wanted is the document.
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
 * The same error without the words of the provider in its message, which is shown to models and users as the reason for a
 * search that failed. They stay in `details`, for operators.
 */
function withoutWords(error: ModelError): ModelError {
  const { code, message, retryable, status, retryAfterMs, details, cause } = error
  const said = details?.said
  const end = ` It says: ${said}`
  if (typeof said !== 'string' || !message.endsWith(end)) return error
  return new ModelError(code, message.slice(0, -end.length), {
    retryable,
    ...(status !== undefined && { status }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(details !== undefined && { details }),
    ...(cause !== undefined && { cause }),
  })
}
