// Which model to use, from the environment.
import { type Model, OxbowError } from '@oxbow/core'
import { offline } from '../offline/offline.ts'
import { type OpenAiChatOptions, openaiChat } from '../openai-chat/openai-chat.ts'
import { type Provider, providers } from './providers.ts'

export type Environment = Readonly<Record<string, string | undefined>>
export type ModelOptions = Pick<OpenAiChatOptions, 'timeouts' | 'limits' | 'fetch'>

/**
 * The model that the environment asks for: `OXBOW_MODEL` (`provider:model`, or a provider that has a default model),
 * else the first provider whose key is set, else the offline model.
 *
 * `OXBOW_BASE_URL`, or `<PROVIDER>_BASE_URL` such as `OPENAI_BASE_URL`, replaces the provider's address.
 * Throws an `OxbowError` with code `model_config` that says what to set.
 *
 * @example
 * const model = modelFromEnvironment(process.env)
 */
export function modelFromEnvironment(environment: Environment, options: ModelOptions = {}): Model {
  if (environment.OXBOW_MODEL) return resolveModel(environment.OXBOW_MODEL, environment, options)
  const found = Object.entries(providers).find(
    ([, provider]) => provider.defaultModel !== undefined && keyOf(provider, environment) !== undefined,
  )
  return found ? resolveModel(`${found[0]}:${found[1].defaultModel}`, environment, options) : offline()
}

/**
 * The model of a name like `deepseek:deepseek-chat`. Only the first colon divides, so `ollama:qwen3:8b` works.
 * `offline` is the model without a key. Throws an `OxbowError` with code `model_config`.
 *
 * @example
 * const model = resolveModel('openai:gpt-5', process.env)
 */
export function resolveModel(name: string, environment: Environment, options: ModelOptions = {}): Model {
  const [id = '', ...rest] = name.trim().split(':')
  if (id === 'offline') return offline()
  const provider = Object.hasOwn(providers, id) ? providers[id] : undefined
  if (!provider) {
    throw configError(
      `There is no provider ${JSON.stringify(id)}. Set OXBOW_MODEL to provider:model with one of: ` +
        `${Object.keys(providers).join(', ')}; or to offline. Other servers that speak OpenAI's chat completions ` +
        'work as vllm:model with VLLM_BASE_URL.',
    )
  }
  const model = rest.join(':') || provider.defaultModel
  if (!model) throw configError(`Name a model of ${id}: set OXBOW_MODEL=${id}:model.`)
  const key = keyOf(provider, environment)
  if (!key && provider.keyVariables.length > 0) {
    throw configError(`${id}:${model} needs a key. Set ${provider.keyVariables.join(' or ')}.`)
  }
  return openaiChat({
    provider: id,
    model,
    baseUrl: environment.OXBOW_BASE_URL || environment[`${id.toUpperCase()}_BASE_URL`] || provider.baseUrl,
    apiKey: key?.value,
    keyVariable: key?.variable,
    quirks: provider.quirks ?? {},
    ...options,
  })
}

function keyOf(provider: Provider, environment: Environment): { variable: string; value: string } | undefined {
  for (const variable of provider.keyVariables) {
    const value = environment[variable]?.trim()
    if (value) return { variable, value }
  }
  return undefined
}

const configError = (message: string) => new OxbowError('model_config', message)
