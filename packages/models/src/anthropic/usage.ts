import type { Usage } from '@oxbow/core'
import { tokenCount as count, mayBeTokens } from '@oxbow/core/internal'

export type Figures = Readonly<Record<string, unknown>>

/**
 * Merges the usage so far with that of a frame: counts are totals, and a provider omits or nulls missing ones.
 */
export function mergeFigures(figures: Figures, frame: unknown): Figures {
  if (typeof frame !== 'object' || frame === null) return figures
  return {
    ...figures,
    ...Object.fromEntries(Object.entries(frame).filter(([, value]) => typeof value === 'number' || value)),
  }
}

/** True when this usage may be meaningful. */
export const tellsFigures = (figures: Figures): boolean =>
  mayBeTokens(figures.input_tokens) &&
  mayBeTokens(figures.output_tokens) &&
  inputOf(figures) + count(figures.output_tokens) > 0

const inputOf = (figures: Figures): number =>
  count(figures.input_tokens) + count(figures.cache_read_input_tokens) + count(figures.cache_creation_input_tokens)

/**
 * Like Oxbow, Anthropic counts cached input outside the input. Thinking is part of the output; older models omit it.
 */
export function anthropicUsage(figures: Figures): Usage {
  const details = (figures.output_tokens_details ?? {}) as Figures
  return {
    inputTokens: count(figures.input_tokens),
    cacheReadTokens: count(figures.cache_read_input_tokens),
    cacheWriteTokens: count(figures.cache_creation_input_tokens),
    outputTokens: count(figures.output_tokens),
    reasoningTokens: count(details.thinking_tokens),
    estimated: false,
  }
}
