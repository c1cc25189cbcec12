// From the events of an Anthropic messages stream to deltas and one reply.
import type { Block, ModelDelta, ModelRequest } from '@oxbow/core'
import { clippedName } from '@oxbow/core/internal'
import { estimateUsage } from '../accounting/estimate.ts'
import type { ReplyAssembler, WireFault } from '../wire/assembler.ts'
import { endedBy, endReasonOf } from '../wire/end-reason.ts'
import { anthropicUsage, type Figures, mergeFigures, tellsFigures } from './usage.ts'

/** An event, or a whole answer that was not streamed. Any field may be missing, null or of another type. */
interface WireEvent {
  readonly type?: unknown
  readonly index?: unknown
  readonly message?: WireMessage | null
  readonly content_block?: WireBlock | null
  readonly delta?: WireDelta | null
  readonly usage?: unknown
  readonly error?: unknown
}

interface WireMessage {
  readonly id?: unknown
  readonly model?: unknown
  readonly content?: readonly (WireBlock | null)[] | null
  readonly stop_reason?: unknown
  readonly usage?: unknown
}

interface WireBlock {
  readonly type?: unknown
  readonly id?: unknown
  readonly name?: unknown
  readonly text?: unknown
  readonly thinking?: unknown
  readonly signature?: unknown
  readonly data?: unknown
  readonly input?: unknown
  readonly to?: { readonly model?: unknown } | null
}

interface WireDelta {
  readonly type?: unknown
  readonly text?: unknown
  readonly thinking?: unknown
  readonly signature?: unknown
  readonly partial_json?: unknown
  readonly stop_reason?: unknown
}

/** A block on the wire. It enters the reply with its first text, signature or name. */
interface OpenBlock {
  readonly type: 'text' | 'thinking' | 'call' | 'ignored'
  readonly id: unknown
  readonly parts: string[]
  tool: string
  /** The input in the start of a call; used when no fragment follows. */
  readonly input: string
  signature: string | undefined
  redacted: string | undefined
  place: number | undefined
}

export interface AnthropicAssemblerOptions {
  readonly request: ModelRequest
  readonly model: string
  /** Calls of this tool are returned as the answer's text. */
  readonly answerTool?: string | undefined
  readonly onDelta: (delta: ModelDelta) => void
  readonly maxCalls?: number
}

export function assembleMessage(options: AnthropicAssemblerOptions): ReplyAssembler {
  const { request, model, answerTool, onDelta, maxCalls = Number.POSITIVE_INFINITY } = options
  /** By index on the wire; a reused index means another block. */
  const open: (OpenBlock | undefined)[] = []
  let latest: OpenBlock | undefined
  /** The blocks of the reply. */
  const blocks: OpenBlock[] = []
  const ignored: string[] = []
  let calls = 0
  let messageId: unknown
  let answeredBy: string | undefined
  let figures: Figures = {}
  let figuresAreFinal = false
  let wireReason: string | undefined
  let ended = false

  const placeOf = (block: OpenBlock): number => {
    block.place ??= blocks.push(block) - 1
    return block.place
  }
  const append = (block: OpenBlock, text: unknown) => {
    if (typeof text !== 'string' || text === '') return
    block.parts.push(text)
    const type = block.type === 'call' ? 'arguments' : block.type === 'thinking' ? 'thinking' : 'text'
    onDelta({ type, block: placeOf(block), text })
  }

  const newBlock = (type: OpenBlock['type'], wire: WireBlock = {}): OpenBlock => ({
    type,
    id: wire.id,
    parts: [],
    tool: typeof wire.name === 'string' ? clippedName(wire.name) : '',
    input: inputText(wire.input),
    signature: undefined,
    redacted: undefined,
    place: undefined,
  })
  const announce = (block: OpenBlock) => {
    calls++
    onDelta({ type: 'call', block: placeOf(block), tool: block.tool })
  }
  const sign = (block: OpenBlock, signature: unknown) => {
    if (block.type !== 'thinking' || typeof signature !== 'string' || signature === '') return
    placeOf(block)
    block.signature = signature
  }

  const startBlock = (index: unknown, wire: WireBlock) => {
    const again = at(index)
    // A duplicate that a gateway sent.
    if (again?.type === 'call' && again.id !== undefined && again.id === wire.id) return
    const block = newBlock(kindOf(wire, answerTool), wire)
    if (typeof index === 'number') open[index] = block
    latest = block
    if (block.type === 'call') announce(block)
    else if (wire.type === 'redacted_thinking' && typeof wire.data === 'string') {
      placeOf(block)
      block.redacted = wire.data
    } else if (block.type === 'text') append(block, wire.text)
    else if (block.type === 'thinking') {
      append(block, wire.thinking)
      sign(block, wire.signature)
    } else {
      ignored.push(clippedName(String(wire.type)))
      // Another model of the provider continues in place of the requested one.
      if (wire.type === 'fallback' && typeof wire.to?.model === 'string') answeredBy = clippedName(wire.to.model)
    }
  }
  const at = (index: unknown): OpenBlock | undefined => (typeof index === 'number' ? open[index] : undefined)

  /** The block of a fragment; a new one is opened when its start was lost or was of another kind. */
  const blockFor = (index: unknown, type: OpenBlock['type']): OpenBlock => {
    const block = at(index) ?? latest
    // The answer tool's text arrives as arguments, and fragments of an ignored block are ignored.
    if (block && (block.type === type || block.type === 'ignored' || (type === 'call' && block.tool !== ''))) {
      return block
    }
    const lost = newBlock(type)
    if (typeof index === 'number') open[index] = lost
    latest = lost
    if (type === 'call') announce(lost)
    return lost
  }
  const addDelta = (index: unknown, delta: WireDelta) => {
    switch (delta.type) {
      case 'text_delta':
        return addTo(blockFor(index, 'text'), delta.text)
      case 'input_json_delta':
        // A tool without arguments sends one empty fragment.
        return delta.partial_json === '' ? undefined : addTo(blockFor(index, 'call'), delta.partial_json)
      case 'thinking_delta':
        return addTo(blockFor(index, 'thinking'), delta.thinking)
      case 'signature_delta':
        return sign(blockFor(index, 'thinking'), delta.signature)
    }
  }
  const addTo = (block: OpenBlock, text: unknown) => {
    if (block.type !== 'ignored') append(block, text)
  }

  /** The start held the whole input. */
  const stopBlock = (block: OpenBlock | undefined) => {
    if (block && block.parts.length === 0 && block.type !== 'ignored') append(block, block.input)
  }

  const startMessage = (message: WireMessage): WireFault | undefined => {
    if (messageId !== undefined && message.id !== messageId) return { type: 'cut' }
    if (messageId !== undefined) return undefined
    messageId = message.id ?? ''
    if (typeof message.model === 'string') answeredBy = clippedName(message.model)
    figures = mergeFigures(figures, message.usage)
    return wholeContent(message)
  }
  const wholeContent = ({ content, stop_reason: reason }: WireMessage): WireFault | undefined => {
    for (const block of Array.isArray(content) ? content : []) {
      if (typeof block !== 'object' || block === null) continue
      startBlock(undefined, block)
      stopBlock(latest)
    }
    return calls > maxCalls ? { type: 'calls' } : noteReason(reason)
  }
  const noteReason = (reason: unknown): WireFault | undefined => {
    if (typeof reason !== 'string') return undefined
    if (endReasonOf(reason) === 'broken')
      return { type: 'error', error: { type: reason, message: `it ended with ${reason}` } }
    wireReason = reason
    return undefined
  }

  const end = (): WireFault | undefined => {
    ended = true
    for (const block of blocks) stopBlock(block)
    const isAnswer = blocks.some((block) => block.type !== 'thinking')
    return ignored.length > 0 && !isAnswer ? { type: 'unread', kinds: ignored } : undefined
  }

  return {
    get complete() {
      return ended || wireReason !== undefined
    },
    mayEnd: false,
    get ended() {
      return ended
    },
    get started() {
      return blocks.length > 0
    },
    frame(event: WireEvent) {
      // Anything after the end belongs to another answer.
      if (ended) return undefined
      switch (event.type) {
        case 'content_block_delta':
          if (event.delta) addDelta(event.index, event.delta)
          return undefined
        case 'content_block_start':
          if (event.content_block) startBlock(event.index, event.content_block)
          return calls > maxCalls ? { type: 'calls' } : undefined
        case 'content_block_stop':
          stopBlock(at(event.index))
          return undefined
        case 'message_start':
          return event.message ? startMessage(event.message) : undefined
        case 'message_delta':
          figures = mergeFigures(figures, event.usage)
          figuresAreFinal ||= typeof event.usage === 'object' && event.usage !== null
          return noteReason(event.delta?.stop_reason)
        case 'message_stop':
          return end()
        case 'message': {
          figuresAreFinal = true
          const fault = startMessage(event as WireMessage)
          return fault ?? end()
        }
      }
      return event.error === undefined || event.error === null ? undefined : { type: 'error', error: event.error }
    },
    reply(finishReason) {
      const finished = blocks.map(closeBlock)
      return {
        blocks: finished,
        // `pause_turn` ends an answer in the middle of a provider tool.
        ...(finishReason === undefined ? endedBy(wireReason, calls > 0) : { finishReason }),
        usage: figuresOf(finished),
        model: answeredBy ?? model,
      }
    },
  }

  function figuresOf(finished: readonly Block[]) {
    if (!tellsFigures(figures)) return estimateUsage(request, finished)
    const usage = anthropicUsage(figures)
    if (figuresAreFinal) return usage
    // The start reports the input and one output token; a cut answer has more.
    const { outputTokens, reasoningTokens } = estimateUsage(request, finished)
    return { ...usage, outputTokens, reasoningTokens, estimated: true }
  }
}

/** Blocks other than text, reasoning and client tool calls belong to the provider: its own tools and their results. */
function kindOf(wire: WireBlock, answerTool: string | undefined): OpenBlock['type'] {
  switch (wire.type) {
    case 'text':
      return 'text'
    case 'thinking':
    case 'redacted_thinking':
      return 'thinking'
    case 'tool_use':
      return wire.name === answerTool ? 'text' : 'call'
    default:
      return 'ignored'
  }
}

function inputText(input: unknown): string {
  if (typeof input === 'string') return input
  return typeof input === 'object' && input !== null && Object.keys(input).length > 0 ? JSON.stringify(input) : ''
}

function closeBlock(block: OpenBlock): Block {
  const text = block.parts.join('')
  if (block.type === 'call') return { type: 'call', callId: '', tool: block.tool, arguments: text }
  if (block.type !== 'thinking') return { type: 'text', text }
  return {
    type: 'thinking',
    text,
    ...(block.signature === undefined ? {} : { signature: block.signature }),
    ...(block.redacted === undefined ? {} : { redacted: block.redacted }),
  }
}
