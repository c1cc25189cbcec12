import type { ModelListeners } from '@oxbow/models'
import type { Logger } from 'pino'
import type { Metrics } from '../telemetry/metrics.ts'

/**
 * Logs and counts model events that no caller sees: circuit breakers that open and close, and failed requests that are
 * retried.
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
    // The message may quote the provider, which may quote the conversation.
    log.warn({ model: name, asked: model, code, waitMs }, 'model request failed')
    log.debug({ model: name, asked: model, code, message }, 'model request failed: message')
  },
})
