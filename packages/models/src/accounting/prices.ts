// What a call costs. Prices change and differ by contract: configured prices win over the library's list; a price
// found in neither stays unknown.
import { type Model, ModelError, type ModelReply, type Usage } from '@oxbow/core'
import { anything, defined, type Fields, fieldsOf } from '@oxbow/core/internal'
import type { calcPrice as calcPriceType } from '@pydantic/genai-prices'
import { COUNT, checkNumbers, type Numbers } from '../check-numbers.ts'
import { checkModel, checkModelOptions } from '../check-options.ts'
import { estimateRequestTokens } from './estimate.ts'
import { mayBeTooLong, tooLong } from './too-long.ts'

/** US dollars per million tokens. */
export interface Price {
  readonly input: number
  readonly output: number
  /** Default: the price of input. */
  readonly cacheRead?: number
  /** Default: the price of input. */
  readonly cacheWrite?: number
}

/** Public facts about a model. */
export interface ModelFacts {
  /** Input and output tokens together. */
  readonly contextWindow?: number
  /** For short requests, where long ones cost more. Undefined when unknown. */
  readonly price?: Price
  /** US dollars for `usage`; undefined when the price is not known. */
  cost(usage: Usage): number | undefined
}

/**
 * The public price list has its own provider names. For a provider that it does not list only a configured price works:
 * otherwise the list would match a model of the same name at another provider.
 */
const LIST_NAMES: Readonly<Record<string, string>> = {
  'amazon-bedrock': 'aws',
  anthropic: 'anthropic',
  azure: 'azure',
  'azure-responses': 'azure',
  bedrock: 'aws',
  deepseek: 'deepseek',
  fireworks: 'fireworks',
  google: 'google',
  groq: 'groq',
  minimax: 'minimax',
  mistral: 'mistral',
  moonshot: 'moonshotai',
  openai: 'openai',
  'openai-responses': 'openai',
  openrouter: 'openrouter',
  together: 'together',
  xai: 'x-ai',
}

/**
 * Looks a model up. `id` is `provider:model`; `reported` is the name in the provider's answer, which is more exact.
 * Source: https://github.com/pydantic/genai-prices, as of the installed version.
 *
 * @example
 * const { contextWindow, cost } = await modelFacts('openai:gpt-5-mini')
 * cost(reply.usage) // US dollars, or undefined
 */
export async function modelFacts(id: string, reported?: string): Promise<ModelFacts> {
  const [ours = '', ...rest] = id.split(':')
  const provider = Object.hasOwn(LIST_NAMES, ours) ? LIST_NAMES[ours] : undefined
  if (provider === undefined) return { cost: () => undefined }
  // Loading the list takes longer than the rest of this package together.
  const { calcPrice } = await import('@pydantic/genai-prices')
  const names = [...(reported === undefined ? [] : [reported]), rest.join(':')]
  const find = (usage: Parameters<typeof calcPrice>[0]) => {
    for (const name of names) {
      const found = calcPrice(usage, name, { providerId: provider })
      if (found !== null) return found
    }
    return undefined
  }
  const found = find({})
  const contextWindow = found?.model.context_window
  const price = found && basePrice(found.model_price)
  return {
    ...defined({ price, contextWindow }),
    cost: ({ inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens }) =>
      find({
        input_tokens: inputTokens + cacheReadTokens + cacheWriteTokens,
        cache_read_tokens: cacheReadTokens,
        cache_write_tokens: cacheWriteTokens,
        output_tokens: outputTokens,
      })?.total_price,
  }
}

type Listed = NonNullable<ReturnType<typeof calcPriceType>>['model_price']

function basePrice(listed: Listed): Price | undefined {
  const base = (of: unknown): number | undefined => {
    const it = typeof of === 'object' && of !== null && 'base' in of ? of.base : of
    return typeof it === 'number' ? it : undefined
  }
  const [input, output] = [base(listed.input_mtok), base(listed.output_mtok)]
  if (input === undefined || output === undefined) return undefined
  const [cacheRead, cacheWrite] = [base(listed.cache_read_mtok), base(listed.cache_write_mtok)]
  return {
    input,
    output,
    ...defined({ cacheRead, cacheWrite }),
  }
}

/** US dollars for `usage` at a configured price. */
export function costAt(price: Price, usage: Usage): number {
  const { input, output, cacheRead = input, cacheWrite = input } = price
  const micros =
    usage.inputTokens * input +
    usage.cacheReadTokens * cacheRead +
    usage.cacheWriteTokens * cacheWrite +
    usage.outputTokens * output
  return micros / 1_000_000
}

/** Configured facts of a model; the rest is looked up in the public list after its first answer. */
export interface OwnFacts {
  readonly price?: Price | undefined
  readonly contextWindow?: number | undefined
}

/** Far above the price of any model, yet sums of it stay finite. */
const DOLLARS = { least: 0, most: 1_000_000 } as const

/** The bounds of prices and windows. */
export const factNumbers = ({ price, contextWindow }: OwnFacts): Numbers => ({
  'price.input': [price?.input, DOLLARS],
  'price.output': [price?.output, DOLLARS],
  'price.cacheRead': [price?.cacheRead, DOLLARS],
  'price.cacheWrite': [price?.cacheWrite, DOLLARS],
  contextWindow: [contextWindow, COUNT],
})

const PRICE: Fields<Price> = { input: anything, output: anything, cacheRead: anything, cacheWrite: anything }

export const FACTS: Fields<OwnFacts> = { price: fieldsOf(PRICE), contextWindow: anything }

export interface PricedModel extends Model {
  /** As far as it is known so far. */
  readonly price?: Price | undefined
}

/**
 * The same model with a known context window, and with a cost in each reply: from the configured facts, else from the
 * public list, else unknown.
 *
 * @throws OxbowError `model_config` for a number out of range
 * @example const model = withFacts(driver, { price: { input: 0.25, output: 2 }, contextWindow: 400_000 })
 */
export function withFacts(model: Model, own: OwnFacts = {}): PricedModel {
  checkModel('withFacts()', model)
  checkModelOptions('withFacts()', own, FACTS)
  checkNumbers(`The facts of ${model.id}`, factNumbers(own))
  const { price, contextWindow } = own
  let window = contextWindow ?? model.contextWindow
  let known = price
  const costOf = async ({ usage, model: reported }: ModelReply): Promise<number | undefined> => {
    if (price !== undefined && window !== undefined) return costAt(price, usage)
    const facts = await modelFacts(model.id, reported)
    window ??= facts.contextWindow
    known ??= facts.price
    return price === undefined ? facts.cost(usage) : costAt(price, usage)
  }
  /** The longest request answered so far. */
  let answered = 0
  const generate: Model['generate'] = async (request, options) => {
    const tokens = estimateRequestTokens(request)
    try {
      const reply = await model.generate(request, options)
      answered = Math.max(answered, tokens)
      return reply
    } catch (error) {
      throw error instanceof ModelError && mayBeTooLong(error, request, { tokens, answered, window })
        ? tooLong(model.id, error)
        : error
    }
  }
  return {
    id: model.id,
    get contextWindow() {
      return window
    },
    get price() {
      return known
    },
    checkTools: (tools) => model.checkTools?.(tools),
    async generate(request, options) {
      const reply = await generate(request, options)
      const cost = await costOf(reply)
      return cost === undefined ? reply : { ...reply, usage: { ...reply.usage, cost } }
    },
  }
}
