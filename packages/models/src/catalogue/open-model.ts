// A model opened by its name alone, for definitions like `model: 'openai:gpt-5'`.
import { type Model, OxbowError } from '@oxbow/core'
import { type Fields, object, text } from '@oxbow/core/internal'
import { checkModelOptions, key } from '../check-options.ts'
import { placeFromEnvironment, placeOfName } from './environment.ts'
import { createModels, type Models } from './models.ts'
import { configError, type Environment } from './open.ts'

export interface OpenModelOptions {
  /** Where keys and addresses are looked up. Default: `process.env`. */
  readonly environment?: Environment
  /** Replaces the provider's address. */
  readonly baseUrl?: string | undefined
  /** The key, instead of the one in the environment. */
  readonly apiKey?: string | undefined
}

const FIELDS: Fields<OpenModelOptions> = { environment: object, baseUrl: text, apiKey: key }

/** The name under which a key that was passed is looked up, and which errors about it name. */
const GIVEN_KEY = 'apiKey'

/** Models of one environment share breakers and queues. */
const opened = new WeakMap<Environment, Models>()

/**
 * The model of a name, with retries, a circuit breaker, a queue and its price: `provider:model`, a provider that has a
 * default model, `default` (as `modelFromEnvironment`), or `offline`. The same object each time, unless an address or a
 * key is passed: open such a model once and keep it.
 *
 * @throws OxbowError `model_config` for an unknown name, an unknown option or a missing key
 * @example
 * const model = openModel('openai:gpt-5')
 * const local = openModel('vllm:qwen3', { baseUrl: 'http://gpu:8000/v1' })
 */
export function openModel(name: string, options: OpenModelOptions = {}): Model {
  checkModelOptions('openModel()', options, FIELDS)
  const { environment = process.env, baseUrl, apiKey } = options
  if (typeof name !== 'string' || name.trim() === '')
    throw new OxbowError(
      'model_config',
      `A model name must be a string like "openai:gpt-5": got ${JSON.stringify(name)}.`,
    )
  if (baseUrl !== undefined || apiKey !== undefined) return openedAt(name.trim(), environment, { baseUrl, apiKey })
  let models = opened.get(environment)
  if (models === undefined) {
    models = createModels({}, environment)
    opened.set(environment, models)
  }
  return models.get(name.trim())
}

function openedAt(name: string, environment: Environment, given: Pick<OpenModelOptions, 'baseUrl' | 'apiKey'>): Model {
  const place = name === 'default' ? placeFromEnvironment(environment) : placeOfName(name, environment)
  const { provider, model, row } = place
  if (row === undefined)
    throw configError(
      'openModel(): the offline model has no address and no key. Name another, for example openai:gpt-5.',
    )
  const { baseUrl = place.baseUrl, apiKey } = given
  const keyVariable = apiKey === undefined ? undefined : GIVEN_KEY
  const models = createModels(
    { models: { own: { provider, model, baseUrl, keyVariable } } },
    { ...environment, [GIVEN_KEY]: apiKey },
  )
  return models.get('own')
}
