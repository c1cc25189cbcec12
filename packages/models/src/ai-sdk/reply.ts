// From the parts of an AI SDK stream to deltas and one reply.
import type {
  LanguageModelV4StreamPart as Part,
  LanguageModelV4FinishReason as SdkFinishReason,
  LanguageModelV4Usage as SdkUsage,
} from '@ai-sdk/provider'
import type { Block, ModelDelta, ModelRequest, Usage } from '@oxbow/core'
import { clippedName, tokenCount as count, mayBeTokens } from '@oxbow/core/internal'
import { estimateUsage } from '../accounting/estimate.ts'
import type { ReplyAssembler, WireFault } from '../wire/assembler.ts'
import { endedBy, endReasonOf } from '../wire/end-reason.ts'
import { type Metadata, sign, signatureOf } from './signature.ts'

interface OpenText {
  readonly type: 'text' | 'reasoning'
  /** Its index among the blocks, from the first fragment on. */
  at: number | undefined
  readonly parts: string[]
  /** The latest one; it covers the whole block. */
  metadata: Metadata | undefined
}

interface OpenCall {
  readonly type: 'call'
  readonly at: number
  readonly tool: string
  readonly parts: string[]
  metadata: Metadata | undefined
}

/** What is read of an event of Bedrock that its package does not pass on. */
interface BedrockEvent {
  readonly messageStop?: { readonly stopReason?: unknown }
  readonly contentBlockStart?: {
    readonly start?: { readonly toolUse?: { readonly type?: string; readonly toolUseId?: string } }
  }
  readonly contentBlockDelta?: { readonly delta?: { readonly toolResult?: unknown } }
}

/** The result of a tool that Bedrock has run itself; its package takes it for a broken event. */
export const isForeignResult = (error: unknown): boolean =>
  (error as { readonly value?: BedrockEvent } | undefined)?.value?.contentBlockDelta?.delta?.toolResult !== undefined

export function assembleParts(
  request: ModelRequest,
  model: string,
  onDelta: (delta: ModelDelta) => void,
  maxCalls = Number.POSITIVE_INFINITY,
): ReplyAssembler {
  const blocks: (OpenText | OpenCall | Block)[] = []
  const texts = new Map<string, OpenText>()
  const calls = new Map<string, OpenCall>()
  /** Parts that only the provider or its own client can use. */
  const unread: string[] = []
  let answeredBy: string | undefined
  /** Calls that the provider runs itself. */
  const foreign = new Set<string>()
  /** Bedrock's finish reason, which precedes the usage; the package reports both at its end. */
  let stopped: string | undefined
  let end: SdkFinishReason | undefined
  let usage: SdkUsage | undefined

  const openText = (type: OpenText['type'], id: string): OpenText => {
    const key = `${type} ${id}`
    let text = texts.get(key)
    if (!text) {
      text = { type, at: undefined, parts: [], metadata: undefined }
      texts.set(key, text)
    }
    return text
  }
  const append = (text: OpenText, piece: string) => {
    if (piece === '') return
    text.at ??= blocks.push(text) - 1
    text.parts.push(piece)
    onDelta({ type: text.type === 'text' ? 'text' : 'thinking', block: text.at, text: piece })
  }
  /** Signed blocks are kept even when empty. */
  const closeText = (text: OpenText) => {
    if (text.metadata === undefined) return
    if (text.type === 'text') blocks.push(signatureOf('text', text.metadata))
    else text.at ??= blocks.push(text) - 1
  }

  const openCall = (id: string, tool: string): OpenCall | undefined => {
    const known = calls.get(id)
    if (known) return known
    if (calls.size === maxCalls) return undefined
    const call: OpenCall = { type: 'call', at: blocks.length, tool: clippedName(tool), parts: [], metadata: undefined }
    calls.set(id, call)
    blocks.push(call)
    onDelta({ type: 'call', block: call.at, tool: call.tool })
    return call
  }
  const addArguments = (call: OpenCall, piece: string) => {
    if (piece === '') return
    call.parts.push(piece)
    onDelta({ type: 'arguments', block: call.at, text: piece })
  }
  const callPart = (part: Part & { type: 'tool-input-start' | 'tool-call' }): WireFault | undefined => {
    if (part.providerExecuted || foreign.has(part.type === 'tool-call' ? part.toolCallId : part.id)) {
      unread.push(part.type === 'tool-call' ? `a call to ${part.toolName}` : part.type)
      return undefined
    }
    const call = openCall(part.type === 'tool-call' ? part.toolCallId : part.id, part.toolName)
    if (!call) return { type: 'calls' }
    call.metadata = part.providerMetadata ?? call.metadata
    // The whole repeats what was streamed; some providers stream nothing before it, or omit its end.
    const streamed = call.parts.join('')
    if (part.type === 'tool-call' && part.input.startsWith(streamed))
      addArguments(call, part.input.slice(streamed.length))
    return undefined
  }

  const finish = (part: Part & { type: 'finish' }): WireFault | undefined => {
    usage = part.usage
    const { unified, raw } = part.finishReason
    if (unified === 'error' || (unified === 'other' && raw !== undefined && endReasonOf(raw) === 'broken')) {
      return { type: 'error', error: { code: raw ?? 'error', message: `it ended with ${raw ?? 'an error'}` } }
    }
    // Without any reason: the SDK also closes a stream that was cut.
    if (unified === 'interrupted' || (unified === 'other' && raw === undefined)) return { type: 'cut' }
    end = part.finishReason
    for (const text of texts.values()) closeText(text)
    return blocks.length === 0 && unread.length > 0 ? { type: 'unread', kinds: unread } : undefined
  }

  return {
    get complete() {
      return end !== undefined || stopped !== undefined
    },
    mayEnd: false,
    get ended() {
      return end !== undefined
    },
    get started() {
      return blocks.length > 0
    },
    frame(frame) {
      // Anything after the end belongs to another answer.
      if (end !== undefined) return undefined
      const part = frame as Part
      switch (part.type) {
        case 'text-start':
        case 'text-delta':
        case 'reasoning-start':
        case 'reasoning-delta': {
          const text = openText(part.type.startsWith('text') ? 'text' : 'reasoning', part.id)
          text.metadata = part.providerMetadata ?? text.metadata
          if ('delta' in part) append(text, part.delta)
          return undefined
        }
        case 'text-end':
        case 'reasoning-end': {
          const type = part.type === 'text-end' ? 'text' : 'reasoning'
          const text = openText(type, part.id)
          text.metadata = part.providerMetadata ?? text.metadata
          closeText(text)
          texts.delete(`${type} ${part.id}`)
          return undefined
        }
        case 'tool-input-start':
        case 'tool-call':
          return callPart(part)
        case 'tool-input-delta': {
          const call = calls.get(part.id)
          if (call) addArguments(call, part.delta)
          return undefined
        }
        case 'file': {
          const file = dataBlock(part)
          blocks.push(file)
          if (part.providerMetadata) blocks.push(signatureOf('file', part.providerMetadata))
          return undefined
        }
        case 'tool-result':
        case 'tool-approval-request':
        case 'custom':
          unread.push(part.type)
          return undefined
        case 'raw': {
          const { messageStop, contentBlockStart } = (part.rawValue ?? {}) as BedrockEvent
          const { type, toolUseId } = contentBlockStart?.start?.toolUse ?? {}
          if (type === 'server_tool_use' && toolUseId !== undefined) foreign.add(toolUseId)
          const word = messageStop?.stopReason
          if (typeof word === 'string' && endReasonOf(word) !== 'broken') stopped = word
          return undefined
        }
        case 'response-metadata':
          answeredBy = part.modelId === undefined ? answeredBy : clippedName(part.modelId)
          return undefined
        case 'finish':
          return finish(part)
        case 'error':
          return { type: 'error', error: part.error }
        default:
          return undefined
      }
    },
    reply(finishReason) {
      const finished = blocks.map(blockOf)
      return {
        blocks: finished,
        ...(finishReason === undefined
          ? endedBy(end === undefined ? stopped : wordOf(end), calls.size > 0)
          : { finishReason }),
        usage: usageOf(usage) ?? estimateUsage(request, finished),
        model: answeredBy ?? model,
      }
    },
  }
}

function blockOf(block: OpenText | OpenCall | Block): Block {
  if (!('parts' in block)) return block
  const text = block.parts.join('')
  const signature = block.metadata === undefined ? {} : { signature: sign(block.metadata) }
  if (block.type === 'call') return { type: 'call', callId: '', tool: block.tool, arguments: text, ...signature }
  return block.type === 'text' ? { type: 'text', text } : { type: 'thinking', text, ...signature }
}

function dataBlock({ mediaType, data }: Part & { type: 'file' }): Block {
  if (data.type === 'url') return { type: 'data', mediaType, url: data.url.href }
  const base64 = typeof data.data === 'string' ? data.data : Buffer.from(data.data).toString('base64')
  return { type: 'data', mediaType, data: base64 }
}

/** Undefined when the provider reported nothing plausible. */
function usageOf(usage: SdkUsage | undefined): Usage | undefined {
  const { inputTokens: input, outputTokens: output } = usage ?? {}
  if (!mayBeTokens(input?.total) || !mayBeTokens(output?.total)) return undefined
  const total = count(input?.total)
  const cacheReadTokens = count(input?.cacheRead)
  const cacheWriteTokens = count(input?.cacheWrite)
  const reasoningTokens = count(output?.reasoning)
  const outputTokens = count(output?.total) || count(output?.text) + reasoningTokens
  // The total includes the cached tokens. A package that subtracts them may report a negative count.
  const cached = cacheReadTokens + cacheWriteTokens
  const inputTokens = count(input?.noCache) || Math.max(0, total - cached)
  if (inputTokens + cacheReadTokens + cacheWriteTokens + outputTokens === 0) return undefined
  return { inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens, reasoningTokens, estimated: cached > total }
}

/**
 * The SDK's finish reason, or the provider's own where the SDK has none for it. Only the provider's reason identifies a
 * refusal.
 */
function wordOf(end: SdkFinishReason | undefined): string | undefined {
  if (end === undefined) return undefined
  return end.unified === 'other' || end.raw === 'refusal' ? (end.raw ?? end.unified) : end.unified
}
