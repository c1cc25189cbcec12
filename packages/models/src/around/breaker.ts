// Stops calling a model that fails, and probes with one request whether it has recovered.
import { type Model, type ModelCallOptions, ModelError, type ModelReply, type ModelRequest } from '@oxbow/core'
import {
  BrokenCircuitError,
  CircuitState,
  CountBreaker,
  circuitBreaker,
  ExponentialBackoff,
  handleWhen,
  type IBackoff,
  type IBackoffFactory,
} from 'cockatiel'
import { COUNT, checkNumbers, DURATION } from '../check-numbers.ts'

export interface BreakerOptions {
  /** Of this many requests … Default 20. */
  readonly requests?: number
  /** … this share must have failed for the breaker to open, 0 to 1. Default 0.5. */
  readonly failureRate?: number
  /** With fewer requests than this the breaker never opens. Default 5. */
  readonly minimum?: number
  /**
   * How long it stays open at first, in milliseconds; longer after each probe that fails, up to 24 times. Default
   * 5,000.
   */
  readonly openMs?: number
}

export type BreakerState = 'closed' | 'open' | 'half_open'

export interface Breaker {
  readonly state: BreakerState
  /**
   * Calls the model, or throws a ModelError `overloaded` at once while the breaker is open. `enter` is awaited before a
   * request is made: it runs its argument when the request may start, and resolves with the function to call when the
   * request has ended.
   */
  generate(
    model: Model,
    request: ModelRequest,
    options: ModelCallOptions,
    enter: (check: () => void) => Promise<() => void>,
  ): Promise<ModelReply>
}

const MAX_OPEN_FACTOR = 24

/** @throws OxbowError `model_config` for a number out of range */
export function breaker(options: BreakerOptions = {}, onChange: (state: BreakerState) => void = () => {}): Breaker {
  const { requests = 20, failureRate = 0.5, minimum = 5, openMs = 5_000 } = options
  checkNumbers('breaker', {
    requests: [requests, COUNT],
    failureRate: [failureRate, { above: 0, most: 1 }],
    minimum: [minimum, COUNT],
    openMs: [openMs, DURATION],
  })
  let openUntil = 0
  const refusal = (model: Model): ModelError => refused(model, openUntil - performance.now())
  const policy = circuitBreaker(
    // A probe that was cancelled or never made shows nothing: it does not close the breaker.
    handleWhen((error) => isFault(error) || (policy.state === CircuitState.HalfOpen && showsNothing(error))),
    {
      halfOpenAfter: resting(
        new ExponentialBackoff({ initialDelay: openMs, maxDelay: openMs * MAX_OPEN_FACTOR }),
        (ms) => {
          openUntil = performance.now() + ms
        },
      ),
      breaker: new CountBreaker({ size: requests, threshold: failureRate, minimumNumberOfCalls: minimum }),
    },
  )
  policy.onStateChange((state) => onChange(nameOf(state)))

  return {
    get state() {
      return nameOf(policy.state)
    },
    async generate(model, request, options, enter) {
      // cockatiel would make it wait for the probe.
      if (policy.state === CircuitState.HalfOpen) throw refusal(model)
      const probing = policy.state !== CircuitState.Closed
      // The breaker may have opened while the request waited for its turn.
      const check = (): void => {
        if (!probing && policy.state !== CircuitState.Closed) throw refusal(model)
      }
      let leave: (() => void) | undefined
      const ask = async (listening: ModelCallOptions): Promise<ModelReply> => {
        leave = await enter(check)
        return model.generate(request, listening)
      }
      try {
        return await (probing ? probe(ask, options) : policy.execute(() => ask(options)))
      } catch (error) {
        throw error instanceof BrokenCircuitError ? refusal(model) : error
      } finally {
        // The next probe starts when the breaker knows the result of this one.
        leave?.()
      }
    },
  }

  /** The first word of an answer shows that the model has recovered; nobody waits for the last. */
  async function probe(
    ask: (options: ModelCallOptions) => Promise<ModelReply>,
    options: ModelCallOptions,
  ): Promise<ModelReply> {
    const first = Promise.withResolvers<void>()
    const onDelta: ModelCallOptions['onDelta'] = (delta) => {
      first.resolve()
      options.onDelta(delta)
    }
    let answer: Promise<ModelReply> | undefined
    await policy.execute(async () => {
      answer = ask({ ...options, onDelta })
      await Promise.race([first.promise, answer])
    })
    return answer!
  }
}

/**
 * The same delays, except that an inconclusive probe is followed by another with the next request. `onWait` receives
 * each delay when it starts.
 */
function resting<Wait extends { readonly result: unknown }>(
  backoff: IBackoffFactory<Wait>,
  onWait: (ms: number) => void,
): IBackoffFactory<Wait> {
  return {
    next(context) {
      const next = backoff.next(context)
      return rest(next, next.duration)
    },
  }
  function rest(current: IBackoff<Wait>, duration: number): IBackoff<Wait> {
    onWait(duration)
    return {
      duration,
      next(context) {
        const { error } = context.result as { readonly error?: unknown }
        if (showsNothing(error)) return rest(current, 0)
        const next = current.next(context)
        return rest(next, next.duration)
      },
    }
  }
}

const nameOf = (state: CircuitState): BreakerState =>
  state === CircuitState.Closed ? 'closed' : state === CircuitState.HalfOpen ? 'half_open' : 'open'

function refused(model: Model, waitMs: number): ModelError {
  const when = waitMs > 0 ? `in ${Math.ceil(waitMs / 1_000)} s` : 'in a moment'
  const message = `Circuit breaker open for ${model.id} after repeated failures. Try again ${when}.`
  return new ModelError('overloaded', message, {
    retryable: true,
    ...(waitMs > 0 && { retryAfterMs: Math.ceil(waitMs) }),
    details: { breaker: 'open' },
  })
}

/** The model's own faults. Rate limits and wrong requests say nothing about whether it works. */
const isFault = (error: unknown): boolean =>
  error instanceof ModelError &&
  error.retryable &&
  error.code !== 'rate_limited' &&
  error.details?.at !== 'output' &&
  !showsNothing(error)

/** The request never reached the model: it was cancelled, or waited in a local or provider queue. */
const showsNothing = (error: unknown): boolean =>
  error instanceof ModelError &&
  (error.code === 'cancelled' ||
    error.details?.queue !== undefined ||
    error.details?.queued !== undefined ||
    error.details?.breaker !== undefined)
