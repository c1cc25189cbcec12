// The border to language models. Drivers live in @oxbow/models.
import type { ModelErrorCode } from './errors.ts'
import { OxbowError } from './errors.ts'
import type { Block, FinishReason, Message, Usage } from './events/types.ts'

export interface ToolSpec {
  readonly name: string
  readonly description: string
  /** JSON Schema of an object. */
  readonly input: Readonly<Record<string, unknown>>
}

export interface ModelRequest {
  readonly system: string
  readonly messages: readonly Message[]
  readonly tools: readonly ToolSpec[]
  readonly toolChoice?: 'auto' | 'none' | 'required' | { readonly tool: string }
  /** The answer must be JSON of this schema. */
  readonly output?: { readonly name: string; readonly schema: Readonly<Record<string, unknown>> }
  readonly temperature?: number
  readonly maxOutputTokens?: number
  /** Passed to the provider unchanged. */
  readonly options?: Readonly<Record<string, unknown>>
}

/** A fragment of the answer. `block` is the index in the reply's `blocks`. */
export type ModelDelta =
  | { readonly type: 'text'; readonly block: number; readonly text: string }
  | { readonly type: 'thinking'; readonly block: number; readonly text: string }
  | { readonly type: 'call'; readonly block: number; readonly tool: string }
  | { readonly type: 'arguments'; readonly block: number; readonly text: string }

export interface ModelReply {
  /** `call` blocks carry an empty `callId`; the engine assigns its own. No empty text blocks. */
  readonly blocks: Block[]
  readonly finishReason: FinishReason
  /** The provider's own word for the end of the answer, where it is not a known one; the reason is then `length`. */
  readonly endedWith?: string
  readonly usage: Usage
  /** As the provider calls it. */
  readonly model: string
  /** The id of the fallback model that answered, if one did. */
  readonly source?: string
}

/** A request that failed before any output, and after which another is made. */
export interface FailedAttempt {
  /** The id of the model that was asked. */
  readonly model: string
  readonly code: ModelErrorCode
  readonly message: string
  /** How long is waited before the next one. */
  readonly waitMs: number
}

export interface ModelCallOptions {
  readonly signal: AbortSignal
  /** Whose call it is: models that make calls wait let the sessions take turns. */
  readonly session?: string
  /** Called synchronously per fragment; must not throw. */
  readonly onDelta: (delta: ModelDelta) => void
  readonly onFailedAttempt?: (attempt: FailedAttempt) => void
}

/**
 * A language model. `generate` resolves with the whole answer, or rejects with a `ModelError` whose `partial` holds
 * what had arrived. It never resolves with a cut answer.
 */
export interface Model {
  /** `provider:model`, for example `openai:gpt-5`. */
  readonly id: string
  /** Tokens of input and output together, if known; it may become known with the first answer. */
  readonly contextWindow?: number | undefined
  generate(request: ModelRequest, options: ModelCallOptions): Promise<ModelReply>
  /** Warns once about each of these tools that cannot be offered to the model. Called when an agent is defined. */
  checkTools?(tools: readonly ToolSpec[]): void
}

/** A failed model call. `partial` is the streamed part; `retryAfterMs` the delay that the provider asks for. */
export class ModelError extends OxbowError {
  declare readonly code: ModelErrorCode
  readonly status: number | undefined
  readonly retryAfterMs: number | undefined
  readonly partial: ModelReply | undefined

  constructor(
    code: ModelErrorCode,
    message: string,
    options: {
      retryable?: boolean
      status?: number
      retryAfterMs?: number
      partial?: ModelReply
      details?: Record<string, unknown>
      cause?: unknown
    } = {},
  ) {
    super(code, message, options)
    this.name = 'ModelError'
    this.status = options.status
    this.retryAfterMs = options.retryAfterMs
    this.partial = options.partial
  }
}

export const noUsage: Usage = {
  inputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  estimated: false,
}

/** No request and no answer has more tokens: a figure above it is a mistake. */
const MOST_TOKENS = 1e9

/** A provider's token count: a whole number, 0 for any other value. */
export const tokenCount = (figure: unknown): number =>
  typeof figure === 'number' && figure > 0 && figure <= MOST_TOKENS ? Math.round(figure) : 0

/** False for an impossible count: then the others of the same usage are unreliable too. */
export const mayBeTokens = (figure: unknown): boolean =>
  figure === undefined || figure === null || (typeof figure === 'number' && figure >= 0 && figure <= MOST_TOKENS)

/** The same usage, without impossible counts: a sum with one of them would stay wrong. */
export function soundUsage(usage: Usage | undefined): Usage {
  const { inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens, reasoningTokens, estimated, cost } =
    usage ?? noUsage
  return {
    inputTokens: tokenCount(inputTokens),
    cacheReadTokens: tokenCount(cacheReadTokens),
    cacheWriteTokens: tokenCount(cacheWriteTokens),
    outputTokens: tokenCount(outputTokens),
    reasoningTokens: tokenCount(reasoningTokens),
    estimated: estimated === true,
    ...(typeof cost === 'number' && cost >= 0 && cost <= MOST_DOLLARS && { cost }),
  }
}

/** No call costs more. */
const MOST_DOLLARS = 1e9

/** The maximum length of names from outside. */
const LONGEST_NAME = 256
export const clippedName = (name: string): string =>
  name.length <= LONGEST_NAME ? name : name.slice(0, LONGEST_NAME).toWellFormed()
