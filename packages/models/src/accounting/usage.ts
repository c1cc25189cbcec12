import type { Usage } from '@oxbow/core'
import { tokenCount as count, mayBeTokens } from '@oxbow/core/internal'

type Figures = Record<string, unknown>

const details = (value: unknown): Figures => (typeof value === 'object' && value !== null ? (value as Figures) : {})

/** True when this usage may be meaningful; providers send `null` or zeros before they know it. */
export const tellsUsage = (wire: unknown): wire is Figures => {
  const figures = details(wire)
  const { prompt_tokens: prompt, completion_tokens: completion } = figures
  return mayBeTokens(prompt) && mayBeTokens(completion) && count(prompt) + count(completion) > 0
}

/** OpenAI's format counts cached input inside the input; here the two are separate. */
export function normaliseUsage(wire: Figures): Usage {
  const input = details(wire.prompt_tokens_details)
  const output = details(wire.completion_tokens_details)
  const prompt = count(wire.prompt_tokens)
  const completion = count(wire.completion_tokens)
  const cacheRead =
    count(input.cached_tokens) ||
    count(wire.prompt_cache_hit_tokens) ||
    count(wire.cached_tokens) ||
    count(wire.cache_read_input_tokens)
  const cacheWrite = count(input.cache_write_tokens) || count(wire.cache_creation_input_tokens)
  const reasoning = count(output.reasoning_tokens) || count(wire.reasoning_tokens)
  // xAI counts reasoning outside the completion; the total reveals it.
  const beside = reasoning > 0 && count(wire.total_tokens) === prompt + completion + reasoning
  // The cache is part of the prompt. Where it is larger, only the total can show that it is counted outside.
  const cached = cacheRead + cacheWrite
  const isBeside = cached > prompt && count(wire.total_tokens) === prompt + cached + completion
  return {
    inputTokens: isBeside ? prompt : Math.max(0, prompt - cached),
    cacheReadTokens: cacheRead,
    cacheWriteTokens: cacheWrite,
    outputTokens: beside ? completion + reasoning : completion,
    reasoningTokens: reasoning,
    // Counts that contradict each other are only an estimate.
    estimated: cached > prompt && !isBeside,
  }
}
