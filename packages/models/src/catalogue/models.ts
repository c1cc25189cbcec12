// The models of a service, all with retries and a breaker: named ones from its configuration, others by provider and
// name.
import { isDeepStrictEqual } from 'node:util'
import type { FailedAttempt, Model } from '@oxbow/core'
import { callable, defined, nearest } from '@oxbow/core/internal'
import { type OwnFacts, type Price, type PricedModel, withFacts } from '../accounting/prices.ts'
import type { BreakerState } from '../around/breaker.ts'
import { withFallbacks } from '../around/fallbacks.ts'
import { type GuardedModel, guardModel, type ModelHealth } from '../around/guard.ts'
import { type QueueOptions, type RequestQueue, requestQueue } from '../around/queue.ts'
import { checkModelOptions } from '../check-options.ts'
import type { EmbeddingModel } from '../embeddings/embedder.ts'
import { addressOf } from '../failures/secrets.ts'
import type { Probe } from '../probe/probe.ts'
import { proxyFor } from '../probe/proxy.ts'
import type { RerankModel } from '../rerank/jina-rerank.ts'
import { answering, CONFIG, type ModelDefinition, type ModelsConfig, modelProblems } from './definition.ts'
import { placeFromEnvironment, placeOfName } from './environment.ts'
import {
  configError,
  type Environment,
  isProvider,
  keyOf,
  type ModelPlace,
  modelPlaceOf,
  openDriver,
  USAGE,
} from './open.ts'
import { providers } from './providers.ts'
import { type EmbedderChoice, openEmbedder, openReranker } from './texts.ts'

export interface ModelListeners {
  readonly onBreaker?: (model: string, state: BreakerState) => void
  /** A request of the named model failed and is retried. */
  readonly onFailedAttempt?: (model: string, attempt: FailedAttempt) => void
}

export interface ListedModel {
  /** The name for `get`. */
  readonly name: string
  /** `provider:model`. */
  readonly model: string
  readonly aliases: readonly string[]
  /** Its base URL without secrets; undefined when it runs in this process. */
  readonly address?: string
  /** The environment variable of its key. Undefined when it needs none. */
  readonly key?: { readonly variable: string; readonly present: boolean }
  /** The configured price, else that of the public list, which is looked up with the first answer. */
  readonly price?: Price
  readonly contextWindow?: number
  readonly fallbacks: readonly { readonly model: string; readonly weight: number }[]
  /** Set once the model, or one it is a fallback of, is in use. */
  readonly health?: ModelHealth
}

export interface Models {
  /**
   * A model by its name, an alias, or `provider:model`; the same object each time.
   * @throws OxbowError `model_config` for an unknown model, or when it or one of its fallbacks has no key
   */
  get(name: string): Model
  /**
   * An embedding model, named as in `get`.
   * @throws OxbowError `model_config` for an unknown model or a missing key
   */
  embedder(name: string, choice?: EmbedderChoice): EmbeddingModel
  /**
   * A reranking model, behind `POST /rerank`, named as in `get`.
   * @throws OxbowError `model_config` for an unknown model or a missing key
   */
  reranker(name: string): RerankModel
  /**
   * How to test a model: alone, without retries and fallbacks. Undefined where there is nothing to test, as for the
   * offline model.
   * @throws OxbowError `model_config` for an unknown name
   */
  probe(name: string): Probe | undefined
  /** Of the models in use, by name. */
  health(): (ModelHealth & { readonly name: string })[]
  list(): ListedModel[]
}

interface Entry {
  readonly name: string
  readonly place: ModelPlace
  readonly definition: Partial<ModelDefinition>
  opened?: { readonly guarded: GuardedModel; readonly model: PricedModel }
  whole?: Model
}

/**
 * Every model with retries, fallbacks, its own breaker, a queue per address, and its price. Without a configuration
 * `default` is the model that the environment selects, as in `modelFromEnvironment`.
 *
 * @throws OxbowError `model_config` with one line for each problem
 * @example
 * const models = createModels(
 *   {
 *     models: {
 *       main: { provider: 'deepseek', model: 'deepseek-chat', fallbacks: [{ model: 'local' }] },
 *       local: { provider: 'vllm', model: 'qwen3', baseUrl: 'http://gpu:8000/v1' },
 *     },
 *     aliases: { default: 'main', fast: 'local' },
 *   },
 *   process.env,
 * )
 * const model = models.get('fast')
 */
export function createModels(
  config: ModelsConfig = {},
  environment: Environment = {},
  listeners: ModelListeners = {},
): Models {
  checkModelOptions('createModels()', config, CONFIG)
  checkModelOptions('createModels(), listeners', listeners, { onBreaker: callable, onFailedAttempt: callable })
  const problems = modelProblems(config)
  if (problems.length > 0) throw configError(problems.join('\n'))
  const { models = {}, aliases = {} } = config
  const entries = new Map<string, Entry>()
  for (const [name, definition] of Object.entries(models))
    entries.set(name, { name, place: modelPlaceOf(definition, environment), definition })
  const limits = limitsByAddress(entries)
  const queues = new Map<string, RequestQueue>()

  const queueOf = ({ row, baseUrl }: ModelPlace): RequestQueue => {
    const address = endpointKey(baseUrl)
    const queue =
      queues.get(address) ?? requestQueue(row === undefined ? { concurrency: Infinity } : limits.get(address))
    queues.set(address, queue)
    return queue
  }

  /** The driver, and the options that go with each request. */
  function drive({ place, definition }: Entry, fetch?: typeof globalThis.fetch): Model {
    const { headers, options, timeouts } = definition
    return openDriver(place, environment, {
      ...defined({ headers, options, timeouts, fetch }),
    })
  }

  /** The model alone, as it serves as a fallback: both share one breaker. */
  function open(entry: Entry): NonNullable<Entry['opened']> {
    if (entry.opened !== undefined) return entry.opened
    const { name, place, definition } = entry
    const guarded = guardModel(drive(entry), {
      queue: queueOf(place),
      onBreaker: (_, state) => listeners.onBreaker?.(name, state),
    })
    entry.opened = { guarded, model: withFacts(guarded, factsOf(definition)) }
    return entry.opened
  }

  function whole(entry: Entry): Model {
    if (entry.whole !== undefined) return entry.whole
    const fallbacks = (entry.definition.fallbacks ?? []).map(({ model, weight = 1 }) => ({
      model: open(entries.get(ownOf(aliases, model) ?? model)!).model,
      weight,
    }))
    const model = withFallbacks(open(entry).model, { fallbacks })
    entry.whole = heard(model, (attempt) => listeners.onFailedAttempt?.(entry.name, attempt))
    return entry.whole
  }

  function byName(name: string): Entry {
    const found = entries.get(ownOf(aliases, name) ?? name)
    if (found !== undefined) return found
    if (name !== 'offline' && !name.includes(':') && !isProvider(name)) throw unknown(name)
    return placed(placeOfName(name, environment))
  }

  function placed(place: ModelPlace): Entry {
    const found = entries.get(place.id) ?? { name: place.id, place, definition: {} }
    entries.set(place.id, found)
    return found
  }

  function unknown(name: string): Error {
    const known = [...Object.keys(models), ...Object.keys(aliases)]
    const close = nearest(name, [...known, ...Object.keys(providers)])
    return configError(
      `Unknown model ${JSON.stringify(name)}${close === undefined ? '.' : `; did you mean ${close}?`} ` +
        `${known.length === 0 ? '' : `Configured: ${known.join(', ')}. `}${USAGE}`,
    )
  }

  function standard(): Entry {
    const [only] = answering(config)
    const name = config.default ?? ownOf(aliases, 'default') ?? only
    return name === undefined ? placed(placeFromEnvironment(environment)) : byName(name)
  }

  /** Not listed among the models that answer, unless the configuration names it. */
  function textsBy(name: string): Pick<Entry, 'place' | 'definition'> {
    const found = entries.get(ownOf(aliases, name) ?? name)
    if (found !== undefined) return found
    if (!name.includes(':')) throw unknown(name)
    return { place: placeOfName(name, environment), definition: {} }
  }

  const find = (name: string): Entry => (name === 'default' ? standard() : byName(name))

  return {
    get: (name) => whole(find(name)),
    embedder: (name, choice = {}) => openEmbedder(textsBy(name), environment, choice),
    reranker: (name) => openReranker(textsBy(name), environment),
    probe(name) {
      const entry = find(name)
      const { place, definition } = entry
      if (place.row === undefined) return undefined
      return {
        baseUrl: place.baseUrl,
        model: place.model,
        keyVariable: keyOf(place.keyVariables, environment)?.variable,
        proxy: proxyFor(place.baseUrl, environment),
        open: (fetch) => withFacts(drive(entry, fetch), factsOf(definition)),
      }
    },
    health: () =>
      [...entries.values()].flatMap(({ name, opened }) =>
        opened === undefined ? [] : [{ name, ...opened.guarded.health() }],
      ),
    list() {
      const { name: first } = standard()
      return [...entries.values()].map((entry): ListedModel => {
        const { name, place, definition, opened } = entry
        const { fallbacks = [] } = definition
        const price = definition.price ?? opened?.model.price
        const contextWindow = opened?.model.contextWindow ?? definition.contextWindow
        const own = Object.entries(aliases).flatMap(([alias, to]) =>
          to === name && alias !== 'default' ? [alias] : [],
        )
        const key = keyOf(place.keyVariables, environment)
        const [preferred] = place.keyVariables
        return {
          name,
          model: place.id,
          aliases: name === first ? ['default', ...own] : own,
          ...(place.row !== undefined && { address: addressOf(place.baseUrl) }),
          ...(preferred !== undefined && { key: { variable: key?.variable ?? preferred, present: key !== undefined } }),
          ...defined({ price, contextWindow }),
          fallbacks: fallbacks.map(({ model, weight = 1 }) => ({ model, weight })),
          ...(opened !== undefined && { health: opened.guarded.health() }),
        }
      })
    },
  }
}

const factsOf = ({ price, contextWindow }: Partial<ModelDefinition>): OwnFacts => ({ price, contextWindow })

/** Names come from a file: `constructor` is a name like any other. */
const ownOf = (aliases: Readonly<Record<string, string>>, name: string): string | undefined =>
  Object.hasOwn(aliases, name) ? aliases[name] : undefined

/** The key of a queue: one address, whatever its spelling. Never show it: it may hold an API key. */
function endpointKey(baseUrl: string): string {
  if (!URL.canParse(baseUrl)) return baseUrl
  const { origin, pathname } = new URL(baseUrl)
  return origin + pathname.replace(/\/+$/, '')
}

/** @throws OxbowError `model_config` when two models at one address have different limits */
function limitsByAddress(entries: ReadonlyMap<string, Entry>): Map<string, QueueOptions> {
  const found = new Map<string, { readonly name: string; readonly limits: QueueOptions }>()
  for (const { name, place, definition } of entries.values()) {
    const { limits } = definition
    if (limits === undefined) continue
    const address = endpointKey(place.baseUrl)
    const other = found.get(address)
    if (other !== undefined && !isDeepStrictEqual(other.limits, limits))
      throw configError(
        `models.${name}.limits: differ from those of models.${other.name}, but both are at ${addressOf(place.baseUrl)}; one address ` +
          'has one queue, so set its limits once',
      )
    found.set(address, { name, limits })
  }
  return new Map([...found].map(([address, { limits }]) => [address, limits]))
}

const heard = (model: Model, listen: (attempt: FailedAttempt) => void): Model => ({
  id: model.id,
  get contextWindow() {
    return model.contextWindow
  },
  checkTools: (tools) => model.checkTools?.(tools),
  generate: (request, options) =>
    model.generate(request, {
      ...options,
      onFailedAttempt(attempt) {
        listen(attempt)
        options.onFailedAttempt?.(attempt)
      },
    }),
})
