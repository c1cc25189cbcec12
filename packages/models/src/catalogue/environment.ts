// Which model to use, from the environment.
import type { Model } from '@oxbow/core'
import {
  configError,
  type Environment,
  keyOf,
  type ModelOptions,
  type ModelPlace,
  modelPlaceOf,
  OFFLINE,
  openDriver,
  USAGE,
} from './open.ts'
import { providers } from './providers.ts'

/**
 * The model that the environment selects: `OXBOW_MODEL` (`provider:model`, or a provider with a default model), else
 * the first provider whose key is set, else the offline model. The bare driver: `createModels` adds retries, a breaker,
 * a queue and prices.
 *
 * `OXBOW_BASE_URL`, or `<PROVIDER>_BASE_URL` such as `OPENAI_BASE_URL`, replaces the provider's address.
 * Throws an `OxbowError` with code `model_config` that says what to set.
 *
 * @example
 * const model = modelFromEnvironment(process.env)
 */
export const modelFromEnvironment = (environment: Environment = process.env, options: ModelOptions = {}): Model =>
  openDriver(placeFromEnvironment(environment), environment, options)

/**
 * The model of a name like `deepseek:deepseek-chat`. Only the first colon separates, so `ollama:qwen3:8b` works.
 * `offline` is the model without a key. Throws an `OxbowError` with code `model_config`.
 *
 * @example
 * const model = resolveModel('openai:gpt-5', process.env)
 */
export const resolveModel = (name: string, environment: Environment, options: ModelOptions = {}): Model =>
  openDriver(placeOfName(name, environment), environment, options)

export function placeFromEnvironment(environment: Environment): ModelPlace {
  if (environment.OXBOW_MODEL) return placeOfName(environment.OXBOW_MODEL, environment)
  const found = Object.entries(providers).find(
    ([, provider]) => provider.defaultModel !== undefined && keyOf(provider.keyVariables, environment) !== undefined,
  )
  return found ? placeOfName(found[0], environment) : OFFLINE
}

export function placeOfName(name: string, environment: Environment): ModelPlace {
  if (typeof name !== 'string' || name.trim() === '')
    throw configError(
      `A model name must be a string like "openai:gpt-5": got ${JSON.stringify(name) ?? 'nothing'}.`.slice(0, 240),
    )
  const [provider = '', ...rest] = name.trim().split(':')
  const baseUrl = environment.OXBOW_BASE_URL || undefined
  try {
    return modelPlaceOf({ provider, model: rest.join(':'), baseUrl }, environment)
  } catch (error) {
    const { message } = error as Error
    // A name like "gpt-5" is a model without its provider.
    throw rest.length === 0 && message.startsWith('Unknown provider')
      ? configError(`Unknown model ${JSON.stringify(name)}. ${USAGE}`)
      : configError(`Model ${JSON.stringify(name)}: ${message}`)
  }
}
