// A model opened by its name alone, for definitions like `model: 'openai:gpt-5'`.
import { type Model, OxbowError } from '@oxbow/core'
import { createModels, type Models } from './models.ts'
import type { Environment } from './open.ts'

export interface OpenModelOptions {
  /** Where keys and addresses are looked up. Default: `process.env`. */
  readonly environment?: Environment
}

/** Models of one environment share breakers and queues. */
const opened = new WeakMap<Environment, Models>()

/**
 * The model of a name, with retries, a circuit breaker, a queue and its price: `provider:model`, a provider that has a
 * default model, `default` (as `modelFromEnvironment`), or `offline`. The same object each time.
 *
 * @throws OxbowError `model_config` for an unknown name or a missing key
 * @example
 * const model = openModel('openai:gpt-5')
 */
export function openModel(name: string, { environment = process.env }: OpenModelOptions = {}): Model {
  if (typeof name !== 'string' || name.trim() === '')
    throw new OxbowError(
      'model_config',
      `A model name must be a string like "openai:gpt-5": got ${JSON.stringify(name)}.`,
    )
  let models = opened.get(environment)
  if (models === undefined) {
    models = createModels({}, environment)
    opened.set(environment, models)
  }
  return models.get(name.trim())
}
