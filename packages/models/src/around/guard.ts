// The layer between the engine and one model: its provider's queue and its own breaker.
import { type Model, ModelError } from '@oxbow/core'
import { callable, defined, object } from '@oxbow/core/internal'
import { breakerFields, checkModel, checkModelOptions } from '../check-options.ts'
import { type BreakerOptions, type BreakerState, breaker } from './breaker.ts'
import { type RequestQueue, requestQueue } from './queue.ts'

export interface GuardOptions {
  /** Shared by all models of a provider. Default: a queue of its own. */
  readonly queue?: RequestQueue
  readonly breaker?: BreakerOptions
  readonly onBreaker?: (model: string, state: BreakerState) => void
}

/** How a model has done in this process. */
export interface ModelHealth {
  readonly model: string
  readonly breaker: BreakerState
  /** Running and queued requests to its provider. */
  readonly running: number
  readonly waiting: number
  /** Answered and failed requests. Cancelled ones are in neither count. */
  readonly answered: number
  readonly failed: number
  /** Milliseconds since 1970. */
  readonly lastAnswerAt?: number
  readonly lastFailure?: { readonly at: number; readonly code: string; readonly message: string }
}

/** False when the breaker or the queue refused the request. */
const wasMade = ({ details }: ModelError): boolean => details?.breaker === undefined && details?.queue === undefined

export interface GuardedModel extends Model {
  health(): ModelHealth
}

/**
 * The same model, limited to its provider's rate and concurrency, with a circuit breaker for repeated failures.
 *
 * @example
 * const queue = requestQueue({ concurrency: 20, requestsPerMinute: 500 })
 * const model = guard(openaiChat({ … }), { queue })
 * @throws OxbowError `model_config` for a breaker option out of range
 */
export function guardModel(model: Model, options: GuardOptions = {}): GuardedModel {
  checkModel('guardModel()', model)
  checkModelOptions('guardModel()', options, { queue: object, breaker: breakerFields, onBreaker: callable })
  const { queue = requestQueue(), onBreaker } = options
  const fuse = breaker(options.breaker, (state) => onBreaker?.(model.id, state))
  const [provider = model.id] = model.id.split(':')
  let answered = 0
  let failed = 0
  let lastAnswerAt: number | undefined
  let lastFailure: ModelHealth['lastFailure']
  let anonymous = 0

  return {
    id: model.id,
    ...defined({ contextWindow: model.contextWindow }),
    checkTools: (tools) => model.checkTools?.(tools),
    async generate(request, call) {
      // A call without a session counts as its own session.
      const session = call.session ?? `#${anonymous++}`
      try {
        const reply = await fuse.generate(model, request, call, (check) =>
          queue.enter(provider, session, call.signal, check),
        )
        answered++
        lastAnswerAt = Date.now()
        return reply
      } catch (error) {
        if (error instanceof ModelError && error.code !== 'cancelled' && wasMade(error)) {
          failed++
          lastFailure = { at: Date.now(), code: error.code, message: error.message }
        }
        throw error
      }
    },
    health: () => ({
      model: model.id,
      breaker: fuse.state,
      running: queue.running,
      waiting: queue.waiting,
      answered,
      failed,
      ...defined({ lastAnswerAt, lastFailure }),
    }),
  }
}
