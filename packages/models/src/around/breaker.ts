// Stops asking a model that fails, and finds out with one request whether it is back.
import { type Model, type ModelCallOptions, ModelError, type ModelReply, type ModelRequest } from '@oxbow/core'
import {
  BrokenCircuitError,
  CircuitState,
  CountBreaker,
  circuitBreaker,
  ExponentialBackoff,
  handleWhen,
} from 'cockatiel'

export interface BreakerOptions {
  /** Of so many requests … Default 20. */
  readonly requests?: number
  /** … this share must have failed for the breaker to open, 0 to 1. Default 0.5. */
  readonly failureRate?: number
  /** Fewer requests than this open nothing. Default 5. */
  readonly minimum?: number
  /** How long it stays open at first, in milliseconds; longer after each probe that fails, up to 24 times. Default 5,000. */
  readonly openMs?: number
}

export type BreakerState = 'closed' | 'open' | 'half_open'

export interface Breaker {
  readonly state: BreakerState
  /** Asks the model, or throws a ModelError `overloaded` at once while the breaker is open. */
  generate(model: Model, request: ModelRequest, options: ModelCallOptions): Promise<ModelReply>
}

const MAX_OPEN_FACTOR = 24

export function breaker(options: BreakerOptions = {}, onChange: (state: BreakerState) => void = () => {}): Breaker {
  const { requests = 20, failureRate = 0.5, minimum = 5, openMs = 5_000 } = options
  const policy = circuitBreaker(
    // A probe that was cancelled has shown nothing.
    handleWhen((error) => isFault(error) || (policy.state === CircuitState.HalfOpen && isCancelled(error))),
    {
      halfOpenAfter: new ExponentialBackoff({ initialDelay: openMs, maxDelay: openMs * MAX_OPEN_FACTOR }),
      breaker: new CountBreaker({ size: requests, threshold: failureRate, minimumNumberOfCalls: minimum }),
    },
  )
  policy.onStateChange((state) => onChange(nameOf(state)))

  /** The first word of an answer shows that the model is back; nobody waits for the last. */
  async function probe(model: Model, request: ModelRequest, options: ModelCallOptions): Promise<ModelReply> {
    const first = Promise.withResolvers<void>()
    const onDelta: ModelCallOptions['onDelta'] = (delta) => {
      first.resolve()
      options.onDelta(delta)
    }
    let answer: Promise<ModelReply> | undefined
    await policy.execute(async () => {
      answer = model.generate(request, { ...options, onDelta })
      await Promise.race([first.promise, answer])
    })
    return answer!
  }

  return {
    get state() {
      return nameOf(policy.state)
    },
    async generate(model, request, options) {
      // cockatiel would let it wait for the probe.
      if (policy.state === CircuitState.HalfOpen) throw refusal(model)
      try {
        return await (policy.state === CircuitState.Closed
          ? policy.execute(() => model.generate(request, options))
          : probe(model, request, options))
      } catch (error) {
        throw error instanceof BrokenCircuitError ? refusal(model) : error
      }
    },
  }
}

const nameOf = (state: CircuitState): BreakerState =>
  state === CircuitState.Closed ? 'closed' : state === CircuitState.HalfOpen ? 'half_open' : 'open'

const refusal = (model: Model): ModelError =>
  new ModelError(
    'overloaded',
    `${model.id} has failed too often and is left alone for a while. Try again in a moment.`,
    {
      retryable: true,
      details: { breaker: 'open' },
    },
  )

/** The model's own faults. That somebody asks too often or wrongly says nothing about whether it works. */
const isFault = (error: unknown): boolean =>
  error instanceof ModelError && error.retryable && error.code !== 'rate_limited' && error.code !== 'cancelled'

const isCancelled = (error: unknown): boolean => error instanceof ModelError && error.code === 'cancelled'
