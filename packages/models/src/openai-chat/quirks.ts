import { type Fields, flag, oneOf } from '@oxbow/core/internal'

/** Where a provider departs from OpenAI's format. The defaults are OpenAI's behaviour. */
export interface Quirks {
  /** False where `stream_options.include_usage` is refused. Default true. */
  readonly includeUsage?: boolean
  /** The field for the limit of output tokens. Default `max_tokens`. */
  readonly maxTokensField?: 'max_tokens' | 'max_completion_tokens'
  /**
   * Reasoning inside `content`. `open`: it starts with `<think>`. `implied`: the opening tag may be missing, so that
   * the answer starts as reasoning until `</think>`.
   */
  readonly thinkTags?: 'open' | 'implied'
  /**
   * Which assistant messages get their reasoning back as `reasoning_content`; `think-tags`: all of them, in `<think>`
   * before the text. Default `never`.
   */
  readonly replayReasoning?: 'never' | 'with-calls' | 'always' | 'think-tags'
  /**
   * `auto` where no other tool choice is supported: a forced one becomes `auto`, and for `none` the tools are omitted.
   */
  readonly toolChoice?: 'auto'
  /**
   * `json_object` where JSON Schema is refused; the schema then goes into the system message. Default `json_schema`.
   */
  readonly output?: 'json_schema' | 'json_object'
  /** True where a conversation must begin with a user's message. */
  readonly userFirst?: boolean
  /** True where the system text and the newest message are marked for the provider's prompt cache (Claude). */
  readonly cacheMarks?: boolean
  /** `nine`: call ids must be nine letters and digits (Mistral). Default: up to 40 of `A-Za-z0-9_-`. */
  readonly callIds?: 'nine'
}

export const CHAT_QUIRKS: Fields<Quirks> = {
  includeUsage: flag,
  maxTokensField: oneOf('max_tokens', 'max_completion_tokens'),
  thinkTags: oneOf('open', 'implied'),
  replayReasoning: oneOf('never', 'with-calls', 'always', 'think-tags'),
  toolChoice: oneOf('auto'),
  output: oneOf('json_schema', 'json_object'),
  userFirst: flag,
  cacheMarks: flag,
  callIds: oneOf('nine'),
}
