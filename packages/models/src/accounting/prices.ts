// What a call costs. Prices change and differ by contract: the configuration's come first, then the library's; a price that
// nobody knows stays unknown.
import type { Model, ModelReply, Usage } from '@oxbow/core'

/** US dollars per million tokens. */
export interface Price {
  readonly input: number
  readonly output: number
  /** Default: as input. */
  readonly cacheRead?: number
  /** Default: as input. */
  readonly cacheWrite?: number
}

/** What is publicly known of a model. */
export interface ModelFacts {
  /** Tokens of input and output together. */
  readonly contextWindow?: number
  /** US dollars for `usage`; undefined when the price is not known. */
  cost(usage: Usage): number | undefined
}

/**
 * The public price list knows providers by other names than ours. Where it knows none, only an own price helps: the list
 * would else find a model of the same name at another provider.
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
 * Looks a model up. `id` is `provider:model`, `reported` the name that the provider gave in its answer, which is more
 * exact. Source: https://github.com/pydantic/genai-prices, as of the installed version.
 *
 * @example
 * const { contextWindow, cost } = await modelFacts('openai:gpt-5-mini')
 * cost(reply.usage) // US dollars, or undefined
 */
export async function modelFacts(id: string, reported?: string): Promise<ModelFacts> {
  const [ours = '', ...rest] = id.split(':')
  const provider = Object.hasOwn(LIST_NAMES, ours) ? LIST_NAMES[ours] : undefined
  if (provider === undefined) return { cost: () => undefined }
  // Loading the list takes longer than all the rest of this package.
  const { calcPrice } = await import('@pydantic/genai-prices')
  const names = [...(reported === undefined ? [] : [reported]), rest.join(':')]
  const find = (usage: Parameters<typeof calcPrice>[0]) => {
    for (const name of names) {
      const found = calcPrice(usage, name, { providerId: provider })
      if (found !== null) return found
    }
    return undefined
  }
  const contextWindow = find({})?.model.context_window
  return {
    ...(contextWindow !== undefined && { contextWindow }),
    cost: ({ inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens }) =>
      find({
        input_tokens: inputTokens + cacheReadTokens + cacheWriteTokens,
        cache_read_tokens: cacheReadTokens,
        cache_write_tokens: cacheWriteTokens,
        output_tokens: outputTokens,
      })?.total_price,
  }
}

/** US dollars for `usage` at a price of one's own. */
export function costAt(price: Price, usage: Usage): number {
  const { input, output, cacheRead = input, cacheWrite = input } = price
  const micros =
    usage.inputTokens * input +
    usage.cacheReadTokens * cacheRead +
    usage.cacheWriteTokens * cacheWrite +
    usage.outputTokens * output
  return micros / 1_000_000
}

/** What one knows of a model oneself; the rest is looked up in the public list when its first answer has come. */
export interface OwnFacts {
  readonly price?: Price | undefined
  readonly contextWindow?: number | undefined
}

/**
 * The same model, which knows its context window and whose replies say what they cost: by one's own facts, else by the
 * public list, else not at all.
 *
 * @example const model = withFacts(driver, { price: { input: 0.25, output: 2 }, contextWindow: 400_000 })
 */
export function withFacts(model: Model, { price, contextWindow }: OwnFacts = {}): Model {
  let window = contextWindow ?? model.contextWindow
  const costOf = async ({ usage, model: reported }: ModelReply): Promise<number | undefined> => {
    if (price !== undefined && window !== undefined) return costAt(price, usage)
    const facts = await modelFacts(model.id, reported)
    window ??= facts.contextWindow
    return price === undefined ? facts.cost(usage) : costAt(price, usage)
  }
  return {
    id: model.id,
    get contextWindow() {
      return window
    },
    async generate(request, options) {
      const reply = await model.generate(request, options)
      const cost = await costOf(reply)
      return cost === undefined ? reply : { ...reply, usage: { ...reply.usage, cost } }
    },
  }
}
