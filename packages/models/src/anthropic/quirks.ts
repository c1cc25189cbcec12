import { anything, type Fields, flag, oneOf } from '@oxbow/core/internal'

/** Where a provider departs from Anthropic's own API. The defaults are Anthropic's behaviour. */
export interface AnthropicQuirks {
  /** `tool` where `output_config.format` is not supported: a JSON answer is requested as a tool call. */
  readonly output?: 'json_schema' | 'tool'
  /** True where reasoning is unsigned but must still be sent back. */
  readonly unsignedThinking?: boolean
  /** `max_tokens` of a request without a limit; the format requires one. Default 32,000. */
  readonly maxTokens?: number
}

export const ANTHROPIC_QUIRKS: Fields<AnthropicQuirks> = {
  output: oneOf('json_schema', 'tool'),
  unsignedThinking: flag,
  maxTokens: anything,
}

/**
 * Models after Claude Opus 4.6 refuse a temperature, and some of them refuse a forced tool call.
 * https://platform.claude.com/docs/en/about-claude/models/migration-guide
 */
export const refusesSampling = (model: string): boolean => /^claude-(opus-4-[7-9]|[a-z]+-([5-9]|\d\d)(-|$))/.test(model)
