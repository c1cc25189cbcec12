// Retries, and tries fallbacks, as long as no part of an answer has been streamed.
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
import { anything, defined, listOf } from '@oxbow/core/internal'
import { estimateUsage } from '../accounting/estimate.ts'
import { checkNumbers, WEIGHT } from '../check-numbers.ts'
import { checkModel, checkModelOptions, retryFields } from '../check-options.ts'
import { checkRetry, type RetryOptions, retrying } from './retry.ts'

export interface Fallback {
  readonly model: Model
  /** How often it is chosen, relative to the others. Default 1. */
  readonly weight?: number
}

export interface FallbackOptions {
  /** Tried when the model cannot answer: each at most once per answer, drawn by weight. */
  readonly fallbacks?: readonly Fallback[]
  readonly retry?: RetryOptions
}

/**
 * A model with retries and fallbacks. A request that failed before any output is retried where that can help, after the
 * delay that the provider asks for or a random, growing one; then each of `fallbacks` is tried. Once part of the answer
 * has been streamed there is no retry. The reply's `source` names the fallback that answered.
 *
 * @throws OxbowError `model_config` for an invalid fallback or a number out of range
 * @example
 * const model = withFallbacks(guard(openai), { fallbacks: [{ model: guard(claude), weight: 2 }, { model: guard(qwen) }]
 * })
 */
export function withFallbacks(model: Model, options: FallbackOptions = {}): Model {
  checkModel('withFallbacks()', model)
  checkModelOptions('withFallbacks()', options, { fallbacks: listOf(anything), retry: retryFields })
  const { fallbacks = [], retry = {} } = options
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
      /** The usage of requests whose answers broke off, because the provider has read them. */
      let spent: Usage = noUsage
      const noteSpent = (error: ModelError) => {
        if (wasRead(error)) spent = addUsage(spent, error.partial?.usage ?? estimateUsage(request, []))
      }
      /** The error to report when every model fails. */
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
          // An error about the request is reported from the requested model; a fallback may just be the wrong model for
          // it.
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

/** An open breaker stays open longer than a request should wait. */
const isOpen = ({ details }: ModelError): boolean => details?.breaker !== undefined

/** Slower than calling another model: a timeout has already cost a minute, and a full queue is slow to drain. */
const takesLong = ({ code, details, retryAfterMs = 0 }: ModelError): boolean =>
  code.endsWith('_timeout') || details?.queue !== undefined || retryAfterMs > 2_000

/** The provider had started to answer, so it has read the request. */
const wasRead = ({ code, details, partial }: ModelError): boolean =>
  partial !== undefined ||
  code === 'stream_cut' ||
  code === 'idle_timeout' ||
  (code === 'total_timeout' && details?.queued === undefined)

/** The same error, with the usage of all requests. */
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
 * Another model would find the conversation as long and the request as wrong; its key, name and account differ.
 */
function isOfRequest({ code, status, details }: ModelError): boolean {
  if (code === 'context_overflow') return true
  return code === 'invalid_request' && status !== 402 && details?.at === undefined
}

/** Removes one from `spares`, with a chance proportional to its weight (Efraimidis and Spirakis, 2006). */
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
  ...defined({ status, retryAfterMs, details }),
})
