/** Where a provider departs from Anthropic's own API. Everything is Anthropic's way by default. */
export interface AnthropicQuirks {
  /** `tool` where `output_config.format` is not known: a JSON answer is asked for as a call of a tool. */
  readonly output?: 'json_schema' | 'tool'
  /** True where reasoning is not signed and must be sent back all the same. */
  readonly unsignedThinking?: boolean
  /** `max_tokens` of a request that names none; the format demands one. Default 32,000. */
  readonly maxTokens?: number
}

/**
 * Models after Claude Opus 4.6 refuse a temperature, and some of them to be forced to call a tool.
 * https://platform.claude.com/docs/en/about-claude/models/migration-guide
 */
export const refusesSampling = (model: string): boolean => /^claude-(opus-4-[7-9]|[a-z]+-([5-9]|\d\d)(-|$))/.test(model)
