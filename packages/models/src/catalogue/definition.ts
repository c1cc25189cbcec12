// A configuration of models, validated before any of them is opened.

import { anyText, anything, type Fields, fieldsOf, nearest, object, text } from '@oxbow/core/internal'
import { FACTS, factNumbers, type Price } from '../accounting/prices.ts'
import type { QueueOptions } from '../around/queue.ts'
import { COUNT, DURATION, type Numbers, numberProblems, WEIGHT } from '../check-numbers.ts'
import { headerFields, recordOf, timeoutFields } from '../check-options.ts'
import type { Timeouts } from '../wire/clock.ts'
import { modelPlaceOf, type PlaceChoice } from './open.ts'

/** A model as a configuration names it. Keys are in the environment; here is only the name of a variable. */
export interface ModelDefinition extends PlaceChoice {
  /** Sent with each request. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Passed to the provider unchanged with each request. */
  readonly options?: Readonly<Record<string, unknown>> | undefined
  readonly timeouts?: Timeouts | undefined
  /** Shared by all models at one address: set it once. */
  readonly limits?: Pick<QueueOptions, 'concurrency' | 'requestsPerMinute'> | undefined
  /** Default: from the public list. */
  readonly price?: Price | undefined
  /** In tokens. Default: from the public list. */
  readonly contextWindow?: number | undefined
  /** Names of fallback models; only the list of the requested model counts. */
  readonly fallbacks?: readonly { readonly model: string; readonly weight?: number | undefined }[] | undefined
}

export interface ModelsConfig {
  readonly models?: Readonly<Record<string, ModelDefinition>>
  /** Purpose → name. `default` is used where no purpose is given. */
  readonly aliases?: Readonly<Record<string, string>>
  /** Takes precedence over the alias of this name: a name, an alias, or `provider:model`. */
  readonly default?: string | undefined
}

export const CONFIG: Fields<ModelsConfig> = {
  models: recordOf(
    fieldsOf({
      provider: text,
      model: anyText,
      keyVariable: text,
      baseUrl: anyText,
      headers: headerFields,
      options: object,
      timeouts: timeoutFields,
      limits: fieldsOf({ concurrency: anything, requestsPerMinute: anything }),
      ...FACTS,
      fallbacks: anything,
    } satisfies Fields<ModelDefinition>),
  ),
  aliases: recordOf(text),
  default: text,
}

const numbersOf = (definition: ModelDefinition): Numbers => ({
  ...factNumbers(definition),
  'limits.concurrency': [definition.limits?.concurrency, COUNT],
  'limits.requestsPerMinute': [definition.limits?.requestsPerMinute, { above: 0 }],
  'timeouts.firstByteMs': [definition.timeouts?.firstByteMs, DURATION],
  'timeouts.idleMs': [definition.timeouts?.idleMs, DURATION],
  'timeouts.totalMs': [definition.timeouts?.totalMs, DURATION],
})

/** Purposes of models that do not answer questions. */
const OF_TEXTS = ['embed', 'rerank']

/** The names of the models that may be the default. */
export const answering = ({ models = {}, aliases = {} }: ModelsConfig): string[] =>
  Object.keys(models).filter((name) => !OF_TEXTS.some((it) => Object.hasOwn(aliases, it) && aliases[it] === name))

/** One line for each mistake, beginning with its key as in the file. */
export function modelProblems({ models = {}, aliases = {}, default: standard }: ModelsConfig): string[] {
  const names = Object.keys(models)
  const problems: string[] = []
  const target = (name: string): string => (Object.hasOwn(aliases, name) ? aliases[name]! : name)
  const missing = (key: string, name: string, known: readonly string[]): void => {
    if (known.includes(name)) return
    const close = nearest(name, known)
    problems.push(
      `${key}: unknown model ${JSON.stringify(name)}` +
        `${close === undefined ? '' : `; did you mean ${JSON.stringify(close)}?`} Configured: ${names.join(', ') || 'none'}`,
    )
  }
  for (const [alias, name] of Object.entries(aliases)) {
    if (names.includes(alias)) problems.push(`models.aliases.${alias}: a model has this name; choose another`)
    missing(`models.aliases.${alias}`, name, names)
  }
  for (const [name, definition] of Object.entries(models)) {
    try {
      modelPlaceOf(definition, {})
    } catch (error) {
      problems.push(`models.${name}: ${(error as Error).message}`)
    }
    problems.push(...numberProblems(numbersOf(definition)).map((it) => `models.${name}.${it}`))
    for (const fallback of definition.fallbacks ?? []) {
      if (typeof fallback?.model !== 'string') {
        problems.push(
          `models.${name}.fallbacks: must be a list like [{ "model": "NAME" }]: got ${JSON.stringify(fallback)}`,
        )
        continue
      }
      const { model, weight } = fallback
      problems.push(...numberProblems({ weight: [weight, WEIGHT] }).map((it) => `models.${name}.fallbacks: ${it}`))
      missing(`models.${name}.fallbacks`, model, [...names, ...Object.keys(aliases)])
      if (target(model) === name) problems.push(`models.${name}.fallbacks: a model cannot be its own fallback`)
    }
  }
  const candidates = answering({ models, aliases })
  if (standard === undefined && candidates.length > 1 && !Object.hasOwn(aliases, 'default'))
    problems.push(`models.aliases.default: required: name the default model, one of ${candidates.join(', ')}`)
  return problems
}
