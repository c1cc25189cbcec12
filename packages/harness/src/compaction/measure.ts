// The length of a conversation: the provider's count, and estimates for the rest.
import type { CompactionRequest, Conversation, Message } from '@oxbow/core'
import { estimateMessageTokens } from '@oxbow/core/internal'
import { fixedTokens } from './options.ts'

const sum = (messages: readonly Message[]): number =>
  messages.reduce((tokens, it) => tokens + estimateMessageTokens(it), 0)

/** How far a provider's count may exceed the estimate: a factor, plus tokens for pictures and hidden instructions. */
const BELIEVED = { times: 4, plus: 8_000 }

/**
 * How many messages the provider's count covers; 0 without a count or with an implausible one: a request that was
 * answered fitted into the window.
 */
function countedIn({ messages, contextTokens, countedTo }: Conversation, fixed: number, window = Infinity): number {
  if (contextTokens === 0 || contextTokens > window || countedTo === undefined) return 0
  const counted = messages.findLastIndex((it) => it.id === countedTo) + 1
  const estimated = fixed + sum(messages.slice(0, counted))
  return contextTokens > estimated * BELIEVED.times + BELIEVED.plus ? 0 : counted
}

/** Tokens of the next request. `fixed`: the part before the conversation, used while there is no count. */
export function contextTokens(conversation: Conversation, fixed: number, window?: number): number {
  const counted = countedIn(conversation, fixed, window)
  const before = counted === 0 ? fixed : conversation.contextTokens
  return before + sum(counted === 0 ? conversation.messages : conversation.messages.slice(counted))
}

export interface Ruler {
  /** Tokens of a request with these messages. */
  total(messages: readonly Message[]): number
  parts(messages: readonly Message[], head: Message | undefined): Record<string, number>
}

/** Estimates, corrected by the provider's counts for this conversation. */
export function rulerFor({ conversation, reason, system, tools }: CompactionRequest, window?: number): Ruler {
  const fixed = fixedTokens(system, [])
  const toolsFixed = fixedTokens('', tools)
  const counted = countedIn(conversation, fixed + toolsFixed, window)
  const estimated = fixed + toolsFixed + sum(conversation.messages.slice(0, counted))
  // A provider's fixed overhead does not grow with the conversation.
  const measured = counted === 0 ? 1 : Math.min(BELIEVED.times, conversation.contextTokens / estimated)
  // A provider that reports few tokens and then refuses the request counts differently from its reports.
  const factor = reason === 'overflow' ? Math.max(1, measured) : measured
  const scaled = (tokens: number): number => Math.ceil(tokens * factor)
  const total = (messages: readonly Message[]): number => scaled(fixed + toolsFixed + sum(messages))
  return {
    total,
    parts(messages, head) {
      const rest = messages.filter((it) => it !== head)
      const of = (role: Message['role']): number => scaled(sum(rest.filter((it) => it.role === role)))
      return {
        instructions: scaled(fixed),
        tools: scaled(toolsFixed),
        ...(head !== undefined && { earlier: scaled(sum([head])) }),
        user: of('user'),
        answers: of('assistant'),
        results: of('tool'),
      }
    },
  }
}
