// Providers refuse a whole history for one call without a result, one empty message or one repeated id. Crashes, cuts,
// cancellations and late results make such histories; this is the one place that repairs them.
import type { Block, CallBlock, Message, ResultBlock } from '@oxbow/core'

/** One repair. `messageId` is the message that needed it. */
export type Repair =
  | { readonly kind: 'empty_block' | 'empty_message' | 'user_first'; readonly messageId: string }
  /** A block that its role cannot hold: left out, or for text and results, put where it belongs. */
  | { readonly kind: 'misplaced_block'; readonly messageId: string; readonly block: Block['type'] }
  | {
      readonly kind: 'missing_result' | 'orphan_result' | 'duplicate_result' | 'moved_result'
      readonly messageId: string
      readonly callId: string
    }
  | { readonly kind: 'duplicate_call_id'; readonly messageId: string; readonly callId: string; readonly newId: string }

/**
 * Returns a history that every provider accepts: no empty blocks or messages, unique call ids, and for every call
 * exactly one result in tool messages directly after it. A missing result is replaced by one that states an unknown
 * outcome; the first of several results wins; results without a call are dropped. With `userFirst` the first message is
 * a user's.
 *
 * Pure, never throws, and idempotent. A valid history is returned as the same array, and unchanged messages as the same
 * objects.
 *
 * @example
 * const { messages, repairs } = repairHistory(history)
 */
export function repairHistory(
  messages: readonly Message[],
  { userFirst = false }: { readonly userFirst?: boolean } = {},
): { readonly messages: readonly Message[]; readonly repairs: readonly Repair[] } {
  const repairs: Repair[] = []
  const sound = isSound(messages) ? messages : rebuild(messages, repairs)
  const first = sound[0]
  if (!userFirst || first === undefined || first.role === 'user') return { messages: sound, repairs }
  repairs.push({ kind: 'user_first', messageId: first.id })
  const opening: Message = {
    id: `${first.id}:before`,
    role: 'user',
    blocks: [{ type: 'text', text: '(The beginning of this conversation is not shown.)' }],
  }
  return { messages: [opening, ...sound], repairs }
}

/** The usual case, over thousands of messages before every request: one pass, two sets. */
function isSound(messages: readonly Message[]): boolean {
  const used = new Set<string>()
  const open = new Set<string>()
  let answering = false
  for (const message of messages) {
    if (message.blocks.length === 0) return false
    if (message.role === 'tool') {
      if (!answering) return false
      for (const block of message.blocks) if (block.type !== 'result' || !open.delete(block.callId)) return false
      continue
    }
    if (open.size > 0) return false
    answering = false
    for (const block of message.blocks) {
      if (isEmpty(block) || !fits(block, message.role)) return false
      if (block.type !== 'call') continue
      if (block.callId === '' || used.has(block.callId)) return false
      used.add(block.callId)
      open.add(block.callId)
      answering = true
    }
  }
  return open.size === 0
}

function isEmpty(block: Block): boolean {
  if (block.type === 'text') return isBlank(block.text)
  if (block.type !== 'thinking') return false
  return block.text === '' && block.signature === undefined && block.redacted === undefined
}

const isBlank = (text: string): boolean => !(text.charCodeAt(0) > 32) && !/\S/.test(text)

function fits(block: Block, role: Message['role']): boolean {
  if (role === 'tool') return block.type === 'result'
  if (role === 'user') return block.type === 'text' || block.type === 'data'
  return block.type !== 'result'
}

/** An assistant message, its calls and their results. */
interface Exchange {
  readonly message: Message
  readonly calls: {
    readonly callId: string
    readonly originalId: string
    readonly tool: string
    result?: ResultBlock
  }[]
  /** The tool messages directly after it. */
  readonly following: Message[]
}

function rebuild(messages: readonly Message[], repairs: Repair[]): Message[] {
  const takenIds = new Set<string>()
  for (const { blocks } of messages) for (const block of blocks) if (block.type === 'call') takenIds.add(block.callId)

  const entries: (Message | Exchange)[] = []
  const usedIds = new Set<string>()
  /** Calls without a result so far, by the id that the result will carry. */
  const waiting = new Map<string, Exchange['calls']>()

  const suffixes = new Map<string, number>()

  const uniqueId = (callId: string): string => {
    if (callId !== '' && !usedIds.has(callId)) return callId
    for (;;) {
      const suffix = (suffixes.get(callId) ?? 1) + 1
      suffixes.set(callId, suffix)
      const id = `${callId || 'call'}~${suffix}`
      if (!takenIds.has(id)) return id
    }
  }

  const takeResult = (result: ResultBlock, message: Message) => {
    const calls = waiting.get(result.callId)
    const call = calls?.find((candidate) => candidate.result === undefined)
    if (call) call.result = call.callId === result.callId ? result : { ...result, callId: call.callId }
    else {
      const kind = calls ? 'duplicate_result' : 'orphan_result'
      repairs.push({ kind, messageId: message.id, callId: result.callId })
    }
  }

  /** The blocks to keep; results are removed, dropped blocks are counted. */
  const keep = (message: Message): Block[] => {
    const kept: Block[] = []
    for (const block of message.blocks) {
      if (isEmpty(block)) repairs.push({ kind: 'empty_block', messageId: message.id })
      else if (fits(block, message.role)) kept.push(block)
      else {
        repairs.push({ kind: 'misplaced_block', messageId: message.id, block: block.type })
        if (block.type === 'result') takeResult(block, message)
      }
    }
    return kept
  }

  const openExchange = (message: Message, blocks: Block[]): Exchange => {
    const exchange: Exchange = { message, calls: [], following: [] }
    const own = new Map<string, Exchange['calls']>()
    const renamed = blocks.map((block) => {
      if (block.type !== 'call') return block
      const callId = uniqueId(block.callId)
      usedIds.add(callId)
      const call = { callId, originalId: block.callId, tool: block.tool }
      exchange.calls.push(call)
      own.set(block.callId, [...(own.get(block.callId) ?? []), call])
      if (callId === block.callId) return block
      repairs.push({ kind: 'duplicate_call_id', messageId: message.id, callId: block.callId, newId: callId })
      return { ...block, callId } satisfies CallBlock
    })
    // A later result belongs to the nearest call of its id.
    for (const [callId, calls] of own) waiting.set(callId, calls)
    return { ...exchange, message: withBlocks(message, renamed) }
  }

  let current: Exchange | undefined
  for (const message of messages) {
    if (message.role === 'tool') {
      current?.following.push(message)
      if (message.blocks.length === 0) repairs.push({ kind: 'empty_message', messageId: message.id })
      for (const block of message.blocks) if (block.type === 'result') takeResult(block, message)
      const stray = straysOf(message, repairs)
      if (stray) entries.push(stray)
      continue
    }
    current = undefined
    const blocks = keep(message)
    if (blocks.length === 0) repairs.push({ kind: 'empty_message', messageId: message.id })
    else if (blocks.some((block) => block.type === 'call')) {
      current = openExchange(message, blocks)
      entries.push(current)
    } else entries.push(withBlocks(message, blocks))
  }
  return entries.flatMap((entry) => ('role' in entry ? [entry] : [entry.message, ...resultMessages(entry, repairs)]))
}

/** Other content of a tool message becomes a user message, so that no text is lost. */
function straysOf(message: Message, repairs: Repair[]): Message | undefined {
  const blocks: Block[] = []
  for (const block of message.blocks) {
    if (block.type === 'result') continue
    if (isEmpty(block)) {
      repairs.push({ kind: 'empty_block', messageId: message.id })
      continue
    }
    repairs.push({ kind: 'misplaced_block', messageId: message.id, block: block.type })
    if (fits(block, 'user')) blocks.push(block)
  }
  return blocks.length === 0 ? undefined : { id: `${message.id}:text`, role: 'user', blocks }
}

/** The tool messages of an exchange: the existing ones when they are correct, else one new message. */
function resultMessages({ message, calls, following }: Exchange, repairs: Repair[]): Message[] {
  const standing = new Map(following.flatMap((tool) => tool.blocks.map((block) => [block, tool] as const)))
  let right = standing.size === calls.length && following.every((tool) => tool.blocks.length > 0)
  const blocks = calls.map(({ callId, originalId, tool, result }): ResultBlock => {
    if (!result) {
      right = false
      repairs.push({ kind: 'missing_result', messageId: message.id, callId })
      return interrupted(callId, tool)
    }
    if (!standing.has(result)) {
      right = false
      if (callId === originalId) repairs.push({ kind: 'moved_result', messageId: message.id, callId })
    }
    return result
  })
  return right ? following : [{ id: following[0]?.id ?? `${message.id}:results`, role: 'tool', blocks }]
}

const interrupted = (callId: string, tool: string): ResultBlock => ({
  type: 'result',
  callId,
  tool,
  status: 'unknown',
  content: [
    { type: 'text', text: 'Interrupted: the outcome of this call is unknown. It may or may not have happened.' },
  ],
})

const withBlocks = (message: Message, blocks: Block[]): Message =>
  blocks.length === message.blocks.length && blocks.every((block, i) => block === message.blocks[i])
    ? message
    : { ...message, blocks }
