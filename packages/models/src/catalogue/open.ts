// From a provider and a name to a driver, with its base URL and key.
import { type Model, OxbowError } from '@oxbow/core'
import { nearest } from '@oxbow/core/internal'
import { sdkModel } from '../ai-sdk/ai-sdk.ts'
import { needPackage } from '../ai-sdk/load.ts'
import { anthropic } from '../anthropic/anthropic.ts'
import { withNotesForImages } from '../around/images.ts'
import { offline } from '../offline/offline.ts'
import { type OpenAiChatOptions, openaiChat } from '../openai-chat/openai-chat.ts'
import { openaiResponses } from '../openai-responses/openai-responses.ts'
import { familyQuirks } from './families.ts'
import { type Provider, providers } from './providers.ts'

export type Environment = Readonly<Record<string, string | undefined>>
export type ModelOptions = Pick<OpenAiChatOptions, 'headers' | 'options' | 'timeouts' | 'limits' | 'fetch'>

/** A model and its endpoint: everything but the key. */
export interface ModelPlace {
  /** `provider:model`. */
  readonly id: string
  readonly provider: string
  readonly model: string
  /** Undefined for the offline model. */
  readonly row: Provider | undefined
  readonly baseUrl: string
  /** Variables that may hold its key, the preferred one first. Empty: it needs none. */
  readonly keyVariables: readonly string[]
}

/** What can be configured of an endpoint; the rest follows from the provider. */
export interface PlaceChoice {
  readonly provider: string
  readonly model?: string | undefined
  readonly keyVariable?: string | undefined
  readonly baseUrl?: string | undefined
}

export const OFFLINE: ModelPlace = {
  id: 'offline:offline',
  provider: 'offline',
  model: 'offline',
  row: undefined,
  baseUrl: 'offline:',
  keyVariables: [],
}

/** Aliases of providers. */
const ALIASES: Readonly<Record<string, string>> = { gemini: 'google' }

export const isProvider = (name: string): boolean => Object.hasOwn(ALIASES, name) || Object.hasOwn(providers, name)

/** @throws OxbowError `model_config` for an unknown provider, or one without a default when no model is named */
export function modelPlaceOf(choice: PlaceChoice, environment: Environment): ModelPlace {
  const provider = Object.hasOwn(ALIASES, choice.provider) ? ALIASES[choice.provider]! : choice.provider
  if (provider === 'offline') return OFFLINE
  const row = Object.hasOwn(providers, provider) ? providers[provider] : undefined
  if (row === undefined) {
    const close = nearest(provider, Object.keys(providers))
    throw configError(
      `Unknown provider ${JSON.stringify(provider)}${close === undefined ? '.' : `; did you mean ${close}?`} ${USAGE}`,
    )
  }
  const model = choice.model || row.defaultModel
  if (model === undefined) throw configError(`${provider} has no default model. Use ${provider}:MODEL.`)
  return {
    id: `${provider}:${model}`,
    provider,
    model,
    row,
    baseUrl: filled(choice.baseUrl || environment[addressVariable(provider)] || row.baseUrl, model, environment),
    keyVariables: choice.keyVariable === undefined ? row.keyVariables : [choice.keyVariable],
  }
}

/** @throws OxbowError `model_config` for a missing key, or an invalid address, key or header */
export function openDriver(place: ModelPlace, environment: Environment, options: ModelOptions = {}): Model {
  const { row } = place
  return row === undefined ? offline() : withNotesForImages(driverOf({ ...place, row }, environment, options))
}

function driverOf(
  { row, ...place }: ModelPlace & { readonly row: NonNullable<ModelPlace['row']> },
  environment: Environment,
  options: ModelOptions,
): Model {
  const { id, provider, model, baseUrl } = place
  const settings = { ...connectionOf({ ...place, row }, environment), ...options }
  switch (row.wire) {
    case 'chat':
      return openaiChat({
        ...settings,
        quirks: { ...row.quirks, ...familyQuirks(model), ...cacheQuirk(provider, model) },
      })
    case 'responses':
      return openaiResponses(settings)
    case 'anthropic':
      return anthropic({ ...settings, quirks: row.quirks ?? {} })
    case 'ai-sdk':
      needPackage(provider, row.package)
      return sdkModel({
        ...settings,
        id,
        secrets: row.package.secrets.flatMap((name) => environment[name]?.trim() || []),
        load: (fetch) => row.package.load({ model, apiKey: settings.apiKey, baseUrl, environment, fetch }),
      })
  }
}

/** Claude caches what is marked, and nothing else. https://openrouter.ai/docs/features/prompt-caching */
const cacheQuirk = (provider: string, model: string) =>
  provider === 'openrouter' && /claude/i.test(model) ? { cacheMarks: true } : {}

/** Address and key. @throws OxbowError `model_config` when one of them is missing */
export function connectionOf(place: ModelPlace, environment: Environment) {
  const { id, provider, model, row, baseUrl, keyVariables } = place
  const key = keyOf(keyVariables, environment)
  if (key === undefined && keyVariables.length > 0)
    throw configError(`${id} needs an API key. Set ${keyVariables.join(' or ')}.`)
  const missing = [...baseUrl.matchAll(gap)].map(([, name]) => name)
  if (missing.length > 0)
    throw configError(`${id} needs a base URL. Set ${missing.join(' and ')}, or ${addressVariable(provider)}.`)
  return {
    provider,
    model,
    baseUrl,
    apiKey: key?.value,
    keyVariable: key?.variable,
    keyHeader: row?.keyHeader,
  }
}

const gap = /\{(\w+)\}/g

/** Replaces names in braces, as far as they are known. */
const filled = (baseUrl: string, model: string, environment: Environment): string =>
  baseUrl.replace(gap, (whole, name) =>
    name === 'model' ? encodeURIComponent(model) : environment[name]?.trim() || whole,
  )

const addressVariable = (provider: string): string => `${provider.toUpperCase().replaceAll('-', '_')}_BASE_URL`

/** The first of these variables that is set. */
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

/** How models are named, for error messages. */
export const USAGE =
  `Use provider:model, for example openai:gpt-5. Providers: ${Object.keys(providers).join(', ')}, offline. ` +
  "Other servers that speak OpenAI's chat completions work as vllm:MODEL with VLLM_BASE_URL."

export const configError = (message: string): OxbowError => new OxbowError('model_config', message)
