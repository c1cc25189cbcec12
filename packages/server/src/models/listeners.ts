import type { ModelListeners } from '@oxbow/models'
import type { Logger } from 'pino'
import type { Metrics } from '../telemetry/metrics.ts'

/**
 * What a model did that nobody was told: breakers that open and close, and requests that failed before another was made.
 *
 * @example const models = createModels(config.models, process.env, modelListeners(log, metrics))
 */
export const modelListeners = (log: Logger, metrics: Pick<Metrics, 'failedAttempt'>): Required<ModelListeners> => ({
  onBreaker: (name, breaker) => {
    if (breaker === 'closed') log.info({ model: name, breaker }, 'circuit breaker closed')
    else
      log.warn(
        { model: name, breaker },
        breaker === 'open' ? 'circuit breaker open' : 'circuit breaker half open: trying one request',
      )
  },
  onFailedAttempt: (name, { model, code, message, waitMs }) => {
    metrics.failedAttempt(model, code)
    // A message may quote the provider, who may quote the conversation.
    log.warn({ model: name, asked: model, code, waitMs }, 'model request failed')
    log.debug({ model: name, asked: model, code, message }, 'model request failed: what it said')
  },
})
