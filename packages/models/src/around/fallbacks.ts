// Asks again, and asks others, as long as nothing of an answer has been shown.
import {
  addUsage,
  type Model,
  type ModelCallOptions,
  ModelError,
  type ModelReply,
  noUsage,
  OxbowError,
  type Usage,
} from '@oxbow/core'
import { estimateUsage } from '../accounting/estimate.ts'
import { checkNumbers, WEIGHT } from '../check-numbers.ts'
import { checkRetry, type RetryOptions, retrying } from './retry.ts'

export interface Fallback {
  readonly model: Model
  /** How often it is taken, compared with the others. Default 1. */
  readonly weight?: number
}

export interface FallbackOptions {
  /** Asked when the model cannot answer: each at most once per answer, drawn by weight. */
  readonly fallbacks?: readonly Fallback[]
  readonly retry?: RetryOptions
}

/**
 * A model that does not give up at once. A request that failed before any output is made again where that can help,
 * after the time that the provider asks for or else a random, growing one; then each of `fallbacks` is asked. Once a
 * part of the answer has been shown nothing is asked again. The reply's `source` names a model that stood in.
 *
 * @throws OxbowError `model_config` for a fallback that is not one, or a number out of range
 * @example
 * const model = withFallbacks(guard(openai), { fallbacks: [{ model: guard(claude), weight: 2 }, { model: guard(qwen) }]
 * })
 */
export function withFallbacks(model: Model, { fallbacks = [], retry = {} }: FallbackOptions = {}): Model {
  checkRetry('withFallbacks', retry)
  for (const fallback of fallbacks) {
    if (typeof fallback?.model?.generate !== 'function') {
      const got = JSON.stringify(fallback)
      throw new OxbowError(
        'model_config',
        `withFallbacks(): fallbacks must be a list like [{ model }], each a Model: got ${got}.`,
      )
    }
    checkNumbers(`fallback ${fallback.model.id}`, { weight: [fallback.weight, WEIGHT] })
  }
  return {
    id: model.id,
    get contextWindow() {
      return model.contextWindow
    },
    checkTools: (tools) => model.checkTools?.(tools),
    async generate(request, options) {
      let shown = false
      const onDelta: ModelCallOptions['onDelta'] = (delta) => {
        shown = true
        options.onDelta(delta)
      }
      const spares = [...fallbacks]
      /** By requests whose answers broke off: the provider has read them. */
      let spent: Usage = noUsage
      const noteSpent = (error: ModelError) => {
        if (wasRead(error)) spent = addUsage(spent, error.partial?.usage ?? estimateUsage(request, []))
      }
      /** What is told when nobody can answer. */
      let told: ModelError | undefined
      for (let asked = model; ; ) {
        try {
          const one = asked
          const reply = await retrying(() => one.generate(request, { ...options, onDelta }), {
            signal: options.signal,
            retry,
            mayRetry: (error) =>
              !shown && error.retryable && !(spares.length > 0 && takesLong(error)) && !isOpen(error),
            onFailedAttempt(error, waitMs) {
              noteSpent(error)
              const { code, message } = error
              options.onFailedAttempt?.({ model: one.id, code, message, waitMs })
            },
          })
          const whole = spent === noUsage ? reply : { ...reply, usage: addUsage(spent, reply.usage) }
          return asked === model ? whole : { source: asked.id, ...whole }
        } catch (error) {
          if (!(error instanceof ModelError)) throw error
          noteSpent(error)
          const own = withSpent(asked === model ? error : answeredBy(asked, error), model, spent)
          if (shown || error.code === 'cancelled' || options.signal.aborted) throw own
          const unfit = isOfRequest(error)
          // What is wrong with the request is the word of the model that was asked; a spare may only be the wrong one
          // for it.
          if (asked === model && unfit) throw own
          if (told === undefined || !unfit) told = own
          const spare = draw(spares)
          if (spare === undefined) throw withSpent(told, model, spent)
          options.onFailedAttempt?.({ model: asked.id, code: error.code, message: error.message, waitMs: 0 })
          asked = spare
        }
      }
    },
  }
}

/** An open breaker stays so for longer than anybody should wait here. */
const isOpen = ({ details }: ModelError): boolean => details?.breaker !== undefined

/** Longer than it takes to ask another model: silence has cost a minute already, and a full queue is not empty soon. */
const takesLong = ({ code, details, retryAfterMs = 0 }: ModelError): boolean =>
  code.endsWith('_timeout') || details?.queue !== undefined || retryAfterMs > 2_000

/** The provider had begun to answer, and has read the request by then. */
const wasRead = ({ code, details, partial }: ModelError): boolean =>
  partial !== undefined ||
  code === 'stream_cut' ||
  code === 'idle_timeout' ||
  (code === 'total_timeout' && details?.queued === undefined)

/** The same error, with what all requests have used up. */
function withSpent(error: ModelError, { id }: Model, spent: Usage): ModelError {
  if (spent === noUsage) return error
  const empty: ModelReply = { blocks: [], finishReason: 'error', usage: noUsage, model: id }
  return new ModelError(error.code, error.message, {
    ...optional(error),
    retryable: error.retryable,
    partial: { ...empty, ...error.partial, usage: spent },
    cause: error.cause ?? error,
  })
}

/**
 * Another model would find the conversation as long, and the request as wrong; it has another key, name and account.
 */
function isOfRequest({ code, status, details }: ModelError): boolean {
  if (code === 'context_overflow') return true
  return code === 'invalid_request' && status !== 402 && details?.at === undefined
}

/** Takes one out of `spares`, the heavier the likelier (Efraimidis and Spirakis, 2006). */
function draw(spares: Fallback[]): Model | undefined {
  const keys = spares.map(({ weight = 1 }) => Math.random() ** (1 / weight))
  const [drawn] = spares.splice(keys.indexOf(Math.max(...keys)), 1)
  return drawn?.model
}

const answeredBy = ({ id }: Model, error: ModelError): ModelError =>
  error.partial === undefined
    ? error
    : new ModelError(error.code, error.message, {
        ...optional(error),
        retryable: error.retryable,
        partial: { source: id, ...error.partial },
        cause: error,
      })

const optional = ({ status, retryAfterMs, details }: ModelError) => ({
  ...(status !== undefined && { status }),
  ...(retryAfterMs !== undefined && { retryAfterMs }),
  ...(details !== undefined && { details }),
})
