// The port for compactors, which shorten long conversations. `compaction()` of @oxbow/harness is one.

import type { Event, EventBody, Failure, Message } from '../events/types.ts'
import {
  type Model,
  type ModelCallOptions,
  type ModelReply,
  type ModelRequest,
  soundUsage,
  type ToolSpec,
} from '../model.ts'
import type { SessionState } from '../state/state.ts'

/** Why a conversation is compacted: it is nearly too long, the provider refused it, or a person asked. */
export type CompactionReason = Event<'context.compacted'>['reason']

/** The conversation, and how much of it the provider has counted. */
export type Conversation = Pick<SessionState, 'messages' | 'contextTokens' | 'countedTo' | 'compaction'>

/** The agent whose conversations are compacted. */
export interface CompactedAgent {
  readonly name: string
  readonly model: Model
  readonly instructions: string
  readonly tools: readonly ToolSpec[]
  readonly maxOutputTokens: number | undefined
}

/** Called once when the agent is defined. Throws an OxbowError when the settings cannot work with it. */
export type CompactorFor = (agent: CompactedAgent) => Compactor

export interface Compactor {
  /** Whether to compact before the next model call. Pure, and asked before each of them: cheap. */
  due(conversation: Conversation): CompactionReason | undefined
  /** Rejects only when the signal fires; what a model does wrong is part of the result. */
  compact(request: CompactionRequest): Promise<Compaction>
}

export interface CompactionRequest {
  readonly conversation: Conversation
  readonly reason: CompactionReason
  /** The part of each request before the conversation. */
  readonly system: string
  readonly tools: readonly ToolSpec[]
  /** The id of a message that replaces others. */
  readonly id: string
  /** For the summarising model. Without it no model is called, and the result is a preview. */
  readonly call: ModelCallOptions | undefined
  /** Asks that model through the agent's middleware, which sees each request to a model. With `call`. */
  readonly generate?: ((model: Model, request: ModelRequest) => Promise<ModelReply>) | undefined
}

export interface Compaction
  extends Pick<Event<'context.compacted'>, 'tier' | 'tokensBefore' | 'tokensAfter' | 'parts' | 'usage' | 'failure'> {
  /** The new conversation; undefined when unchanged. */
  readonly messages?: Message[]
  readonly memory?: unknown
  /** Why even the compacted conversation fits no request: the turn fails with this error. */
  readonly full?: Failure
}

export type CompactedBody = Extract<EventBody, { type: 'context.compacted' }>

/** The event of a compaction. */
export function compactedEvent(
  of: Pick<Event<'context.compacted'>, 'turnId' | 'step' | 'reason'>,
  before: readonly Message[],
  { full: _, usage, ...compaction }: Compaction,
): CompactedBody {
  const messagesAfter = compaction.messages?.length ?? before.length
  return {
    type: 'context.compacted',
    ...of,
    messagesBefore: before.length,
    messagesAfter,
    ...compaction,
    ...(usage !== undefined && { usage: soundUsage(usage) }),
  }
}
