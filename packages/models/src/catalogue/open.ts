// From a provider and a name to a driver: where it is asked, and with which key.
import { type Model, nearest, OxbowError } from '@oxbow/core'
import { offline } from '../offline/offline.ts'
import { type OpenAiChatOptions, openaiChat } from '../openai-chat/openai-chat.ts'
import { type Provider, providers } from './providers.ts'

export type Environment = Readonly<Record<string, string | undefined>>
export type ModelOptions = Pick<OpenAiChatOptions, 'headers' | 'timeouts' | 'limits' | 'fetch'>

/** A model, and where it is asked: everything but the key. */
export interface Place {
  /** `provider:model`. */
  readonly id: string
  readonly provider: string
  readonly model: string
  /** Undefined: the offline model. */
  readonly row: Provider | undefined
  readonly baseUrl: string
  /** Variables that may hold its key, the preferred one first. Empty: it needs none. */
  readonly keyVariables: readonly string[]
}

/** What may be said of a place; the rest follows from the provider. */
export interface PlaceChoice {
  readonly provider: string
  readonly model?: string | undefined
  readonly keyVariable?: string | undefined
  readonly baseUrl?: string | undefined
}

export const OFFLINE: Place = {
  id: 'offline:offline',
  provider: 'offline',
  model: 'offline',
  row: undefined,
  baseUrl: 'offline:',
  keyVariables: [],
}

/** @throws OxbowError `model_config` for a provider that nobody knows, or one of which no model is named */
export function placeOf(choice: PlaceChoice, environment: Environment): Place {
  const { provider } = choice
  if (provider === 'offline') return OFFLINE
  const row = Object.hasOwn(providers, provider) ? providers[provider] : undefined
  if (row === undefined) {
    const names = Object.keys(providers)
    const close = nearest(provider, names)
    throw configError(
      `there is no provider ${JSON.stringify(provider)}${close === undefined ? '.' : `; did you mean ${close}?`} ` +
        `There are: ${names.join(', ')}, offline. Other servers that speak OpenAI's chat completions work as vllm with ` +
        'their address (VLLM_BASE_URL).',
    )
  }
  const model = choice.model || row.defaultModel
  if (model === undefined) throw configError(`a model of ${provider} must be named.`)
  return {
    id: `${provider}:${model}`,
    provider,
    model,
    row,
    baseUrl: choice.baseUrl || environment[`${provider.toUpperCase()}_BASE_URL`] || row.baseUrl,
    keyVariables: choice.keyVariable === undefined ? row.keyVariables : [choice.keyVariable],
  }
}

/** @throws OxbowError `model_config` for a missing key, or an address, key or header that cannot be right */
export function openModel(place: Place, environment: Environment, options: ModelOptions = {}): Model {
  const { id, provider, model, row, baseUrl, keyVariables } = place
  if (row === undefined) return offline()
  const key = keyOf(keyVariables, environment)
  if (key === undefined && keyVariables.length > 0)
    throw configError(`${id} needs a key. Set ${keyVariables.join(' or ')}.`)
  return openaiChat({
    provider,
    model,
    baseUrl,
    apiKey: key?.value,
    keyVariable: key?.variable,
    quirks: row.quirks ?? {},
    ...options,
  })
}

/** The first of these variables that holds something. */
export function keyOf(
  variables: readonly string[],
  environment: Environment,
): { readonly variable: string; readonly value: string } | undefined {
  for (const variable of variables) {
    const value = environment[variable]?.trim()
    if (value) return { variable, value }
  }
  return undefined
}

export const configError = (message: string): OxbowError => new OxbowError('model_config', message)
