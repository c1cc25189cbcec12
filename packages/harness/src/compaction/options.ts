// Compaction settings, and whether they can work with an agent.
import { type CompactedAgent, estimateTokens, type Model, OxbowError } from '@oxbow/core'

export interface CompactionOptions {
  /** Compact at this number of messages. Default 30. */
  readonly trigger?: number
  /** How many of the newest messages stay unchanged. Default 10. */
  readonly keep?: number
  /** Compact when the context exceeds this share of the window. Default 0.6. */
  readonly threshold?: number
  /** In tokens. Default: the model's window; while that is unknown only `trigger` counts. */
  readonly contextWindow?: number
  /** The model that writes the summaries. Default: the agent's own model. */
  readonly model?: Model
  /** The maximum summary length in tokens. Default: a tenth of the window, at most 1,500. */
  readonly summaryTokens?: number
  /**
   * How many tokens of the user's messages stay verbatim, newest first. Default: 15 % of the window, at most 8,000.
   */
  readonly userTokens?: number
}

export interface CompactionSettings {
  readonly trigger: number
  readonly keep: number
  readonly threshold: number
  readonly model: Model
  /** Undefined while unknown. */
  window(): number | undefined
  sizes(): Sizes
}

/** All in tokens; infinite where the window is unknown. */
export interface Sizes {
  /** The size at which compaction becomes due. */
  readonly budget: number
  /** The maximum request size that leaves room for an answer. */
  readonly limit: number
  readonly summary: number
  readonly user: number
}

/** @throws OxbowError `compaction_invalid`, with the arithmetic */
export function settingsFor(options: CompactionOptions, agent: CompactedAgent): CompactionSettings {
  const { trigger = 30, keep = 10, threshold = 0.6, model = agent.model } = options
  for (const [name, value] of Object.entries({ trigger, keep, ...tokensOf(options) }))
    if (!(Number.isInteger(value) && value > 0))
      throw invalidCompaction(`${name} must be a whole number above 0, not ${value}`)
  if (!(threshold > 0 && threshold < 1)) throw invalidCompaction(`threshold must be between 0 and 1, not ${threshold}`)
  if (keep + 1 >= trigger)
    throw invalidCompaction(
      `keep ${keep} + 1 summary = ${keep + 1} messages are left after a compaction, but trigger ${trigger} makes the next ` +
        `one due immediately. Set trigger above ${keep + 1}, or keep below ${trigger - 1}`,
    )
  const window = (): number | undefined => options.contextWindow ?? agent.model.contextWindow
  const sizes = (): Sizes => sizesOf(options, threshold, window(), agent.maxOutputTokens)
  check(agent, threshold, window(), sizes())
  return { trigger, keep, threshold, model, window, sizes }
}

function sizesOf(
  { summaryTokens, userTokens }: CompactionOptions,
  threshold: number,
  window: number | undefined,
  maxOutputTokens: number | undefined,
): Sizes {
  const part = (share: number, most: number) => Math.min(most, Math.floor((window ?? Infinity) * share))
  return {
    budget: window === undefined ? Infinity : Math.floor(window * threshold),
    limit: window === undefined ? Infinity : window - (maxOutputTokens ?? Math.floor(window / 10)),
    summary: summaryTokens ?? part(0.1, 1_500),
    user: userTokens ?? part(0.15, 8_000),
  }
}

function check(agent: CompactedAgent, threshold: number, window: number | undefined, sizes: Sizes): void {
  if (window === undefined) return
  const { budget, limit, summary, user } = sizes
  if (budget >= limit)
    throw invalidCompaction(
      `window ${window} × threshold ${threshold} = ${budget} tokens, but only ${window} − ${window - limit} for the answer ` +
        `= ${limit} are left for a request. Lower threshold or the agent's maxOutputTokens`,
    )
  const fixed = fixedTokens(agent.instructions, agent.tools)
  const needed = fixed + summary + user
  if (needed >= limit || summary + user >= budget)
    throw invalidCompaction(
      `instructions and tools ${fixed} + summary ${summary} + the user's messages ${user} = ${needed} tokens do not fit: a ` +
        `request may take ${limit}, and compaction is due at ${budget} (window ${window} × ${threshold}). Lower ` +
        'summaryTokens or userTokens, give the agent fewer tools, or use a model with a larger window',
    )
}

/** The part of each request before the conversation. */
export const fixedTokens = (system: string, tools: CompactedAgent['tools']): number =>
  estimateTokens(system) +
  tools.reduce((sum, it) => sum + estimateTokens(it.name + it.description + JSON.stringify(it.input)), 0)

const tokensOf = ({ contextWindow, summaryTokens, userTokens }: CompactionOptions): Record<string, number> =>
  Object.fromEntries(
    Object.entries({ contextWindow, summaryTokens, userTokens }).flatMap(([name, it]) =>
      it === undefined ? [] : [[name, it]],
    ),
  )

export const invalidCompaction = (what: string): OxbowError =>
  new OxbowError('compaction_invalid', `compaction: ${what}.`)
