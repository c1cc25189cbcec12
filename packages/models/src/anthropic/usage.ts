import type { Usage } from '@oxbow/core'
import { tokenCount as count, mayBeTokens } from '@oxbow/core/internal'

export type Figures = Readonly<Record<string, unknown>>

/** The figures so far and those of a frame: they are totals, and a provider leaves out or nulls what it does not tell. */
export function mergeFigures(figures: Figures, frame: unknown): Figures {
  if (typeof frame !== 'object' || frame === null) return figures
  return {
    ...figures,
    ...Object.fromEntries(Object.entries(frame).filter(([, value]) => typeof value === 'number' || value)),
  }
}

/** True when these figures say something that may be right. */
export const tellsFigures = (figures: Figures): boolean =>
  mayBeTokens(figures.input_tokens) &&
  mayBeTokens(figures.output_tokens) &&
  inputOf(figures) + count(figures.output_tokens) > 0

const inputOf = (figures: Figures): number =>
  count(figures.input_tokens) + count(figures.cache_read_input_tokens) + count(figures.cache_creation_input_tokens)

/** Anthropic counts cached input beside the input, as we do. Thinking is inside the output; older models do not tell it. */
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
