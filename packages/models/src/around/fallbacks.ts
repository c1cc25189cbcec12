// Asks again, and asks others, as long as nothing of an answer has been shown.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Model, type ModelCallOptions, ModelError, type ModelReply, type ModelRequest } from '@oxbow/core'

export interface RetryOptions {
  /** Requests to one model for one answer. Default 3. */
  readonly attempts?: number
  /** The wait before the second request is up to this, in milliseconds, then up to twice as much … Default 500. */
  readonly baseMs?: number
  /** No wait is longer, even if the provider asks for it: the next model is asked instead. Default 30,000. */
  readonly maxMs?: number
}

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
 * A model that does not give up at once. A request that failed before any output is made again where that can help, after
 * the time that the provider asks for or else a random, growing one; then each of `fallbacks` is asked. Once a part of the
 * answer has been shown nothing is asked again. The reply's `source` names a model that stood in.
 *
 * @example
 * const model = withFallbacks(guard(openai), { fallbacks: [{ model: guard(claude), weight: 2 }, { model: guard(qwen) }] })
 */
export function withFallbacks(model: Model, { fallbacks = [], retry = {} }: FallbackOptions = {}): Model {
  return {
    id: model.id,
    async generate(request, options) {
      let shown = false
      const onDelta: ModelCallOptions['onDelta'] = (delta) => {
        shown = true
        options.onDelta(delta)
      }
      const spares = [...fallbacks]
      for (let asked = model; ; ) {
        try {
          const mayRetry = (error: ModelError): boolean => !shown && mayGoWellNow(error, spares.length > 0)
          const reply = await persist(asked, request, { ...options, onDelta }, retry, mayRetry)
          return asked === model ? reply : { source: asked.id, ...reply }
        } catch (error) {
          if (!(error instanceof ModelError)) throw error
          const spare = !shown && mayBeAnotherModels(error) && !options.signal.aborted ? draw(spares) : undefined
          if (spare === undefined) throw asked === model ? error : answeredBy(asked, error)
          options.onFailedAttempt?.({ model: asked.id, code: error.code, message: error.message, waitMs: 0 })
          asked = spare
        }
      }
    },
  }
}

/** One model, asked until it answers or must not be asked again. */
async function persist(
  model: Model,
  request: ModelRequest,
  options: ModelCallOptions,
  { attempts = 3, baseMs = 500, maxMs = 30_000 }: RetryOptions,
  mayRetry: (error: ModelError) => boolean,
): Promise<ModelReply> {
  for (let attempt = 1; ; attempt++) {
    let fault: ModelError
    try {
      return await model.generate(request, options)
    } catch (error) {
      if (!(error instanceof ModelError) || !mayRetry(error) || attempt >= attempts) throw error
      // What the provider asks for is no random number.
      if ((error.retryAfterMs ?? 0) > maxMs) throw error
      fault = error
    }
    const backoffMs = Math.random() * Math.min(maxMs, baseMs * 2 ** (attempt - 1))
    const waitMs = Math.round(Math.max(fault.retryAfterMs ?? 0, backoffMs))
    options.onFailedAttempt?.({ model: model.id, code: fault.code, message: fault.message, waitMs })
    try {
      await sleep(waitMs, undefined, { signal: options.signal })
    } catch {
      throw new ModelError('cancelled', 'The model call was cancelled before it was tried again.')
    }
  }
}

/** An open breaker stays so for longer than anybody should wait here, and silence has cost a minute already. */
const mayGoWellNow = (error: ModelError, haveSpare: boolean): boolean =>
  error.retryable && error.details?.breaker === undefined && !(haveSpare && error.code === 'first_byte_timeout')

/** Another model would find the conversation as long, and the request as wrong; it has another key, name and account. */
function mayBeAnotherModels({ code, status }: ModelError): boolean {
  if (code === 'cancelled' || code === 'context_overflow') return false
  return code !== 'invalid_request' || status === 402 || status === 404
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
