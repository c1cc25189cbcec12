// From the frames of a chat-completions stream to deltas and one reply.
import type { Block, DataBlock, ModelDelta, ModelRequest } from '@oxbow/core'
import { clippedName } from '@oxbow/core/internal'
import { estimateUsage } from '../accounting/estimate.ts'
import { normaliseUsage, tellsUsage } from '../accounting/usage.ts'
import type { ReplyAssembler, WireFault } from '../wire/assembler.ts'
import { endedBy, endReasonOf } from '../wire/end-reason.ts'
import { assembleCalls, type OpenCall } from './calls.ts'
import { imageOf } from './images.ts'
import type { Quirks } from './quirks.ts'
import { reasoningDetailsReader } from './reasoning-details.ts'
import { thinkTagFilter } from './think-tags.ts'

/** A frame, or a whole answer that was not streamed. Any field may be missing, null or of another type. */
export interface WireFrame {
  readonly object?: unknown
  readonly model?: unknown
  readonly usage?: unknown
  readonly x_groq?: { readonly usage?: unknown } | null
  readonly choices?: readonly (WireChoice | null)[] | null
  readonly error?: unknown
  readonly output?: unknown
  readonly message?: unknown
  readonly detail?: unknown
  readonly base_resp?: { readonly status_code?: unknown } | null
}

interface WireChoice {
  readonly index?: unknown
  readonly delta?: WireMessage | null
  readonly message?: WireMessage | null
  readonly finish_reason?: unknown
  readonly usage?: unknown
  readonly error?: unknown
}

interface WireMessage {
  readonly content?: unknown
  readonly refusal?: unknown
  readonly reasoning_content?: unknown
  readonly reasoning?: unknown
  readonly reasoning_details?: unknown
  readonly tool_calls?: unknown
  /** The older form of one call. */
  readonly function_call?: unknown
  readonly images?: unknown
  readonly audio?: unknown
}

type OpenBlock =
  | { type: 'text' | 'thinking'; readonly parts: string[] }
  | { readonly type: 'call'; readonly call: OpenCall }
  | DataBlock

const warnedOf = new Set<string>()

/** They are paid for, and nothing can be done with them. */
function warnOfOthers(model: string): void {
  if (warnedOf.has(model)) return
  warnedOf.add(model)
  process.emitWarning(`${model} gives several answers to one request, and only the first counts. Leave out "n".`, {
    type: 'OxbowWarning',
    code: 'OXBOW_SEVERAL_ANSWERS',
  })
}

export function assembleReply(
  request: ModelRequest,
  model: string,
  quirks: Quirks,
  onDelta: (delta: ModelDelta) => void,
  maxCalls = Number.POSITIVE_INFINITY,
): ReplyAssembler {
  const blocks: OpenBlock[] = []
  let current: (OpenBlock & { type: 'text' | 'thinking' }) | undefined
  let answeredBy: string | undefined
  let usage: Record<string, unknown> | undefined
  let wireReason: string | undefined
  let refused = false
  /** The index of the answer that counts. */
  let first: unknown
  const details = reasoningDetailsReader()
  /** Parts that this driver does not read. */
  const unread: string[] = []

  const append = (type: 'text' | 'thinking', text: string) => {
    if (text === '') return
    announceAll()
    if (current?.type !== type) open(type)
    current!.parts.push(text)
    onDelta({ type, block: blocks.length - 1, text })
  }
  const open = (type: 'text' | 'thinking') => {
    current = { type, parts: [] }
    blocks.push(current)
    return current
  }

  const announce = (call: OpenCall) => {
    call.block = blocks.length
    blocks.push({ type: 'call', call })
    current = undefined
    onDelta({ type: 'call', block: call.block, tool: call.tool })
    if (call.parts.length > 0) onDelta({ type: 'arguments', block: call.block, text: call.parts.join('') })
  }
  const calls = assembleCalls(maxCalls, (call, piece) => {
    if (call.block !== undefined) {
      if (piece !== '') onDelta({ type: 'arguments', block: call.block, text: piece })
    } else if (call.tool !== '' && call.parts.length > 0) announceUpTo(call)
  })
  /**
   * In order of their start. A call without arguments is announced when something follows: its name may continue.
   */
  const announceUpTo = (last: OpenCall | undefined) => {
    for (const call of calls.calls) {
      if (call.block === undefined && call.tool !== '') announce(call)
      if (call === last) return
    }
  }
  const announceAll = () => {
    if (calls.calls.at(-1)?.block === undefined) announceUpTo(undefined)
  }
  /** Arguments whose tool was never named: the model must be informed that the call did not run. */
  const announceNameless = () => {
    for (const call of calls.calls) if (call.block === undefined && call.parts.length > 0) announce(call)
  }

  /** The block of the filter's latest output. */
  let sorted: typeof current
  const sort = (type: 'text' | 'thinking', text: string) => {
    append(type, text)
    sorted = current
  }
  const sortedWrongly = (type: 'text' | 'thinking') => {
    if (sorted) sorted.type = type
    current = undefined
  }
  const tags = quirks.thinkTags && thinkTagFilter(quirks.thinkTags, sort, sortedWrongly)
  const answer = tags ? tags.push : (text: string) => append('text', text)

  /** Content in parts: Mistral's thinking, or plain text parts. */
  const contentParts = (parts: readonly unknown[]) => {
    for (const part of parts as readonly { type?: unknown; text?: unknown; thinking?: unknown }[]) {
      if (part?.type === 'thinking') {
        const inner = Array.isArray(part.thinking) ? part.thinking : [{ text: part.thinking }]
        for (const piece of inner) if (typeof piece?.text === 'string') append('thinking', piece.text)
      } else if (part?.type === 'image_url') addImage(part)
      else if (typeof part?.text === 'string') answer(part.text)
      else if (typeof part?.type === 'string') unread.push(clippedName(part.type))
    }
  }
  const addImage = (part: unknown) => {
    const { image_url: image } = (part ?? {}) as { readonly image_url?: { readonly url?: unknown } | string | null }
    const block = imageOf(typeof image === 'string' ? image : image?.url)
    if (block === undefined) return void unread.push('an image')
    blocks.push(block)
    current = undefined
  }
  /** False when there are more calls than an answer may hold. */
  const addCalls = ({ tool_calls: fragments, function_call: only }: WireMessage): boolean => {
    // The input of a custom tool is text and not an object.
    if (Array.isArray(fragments)) {
      for (const it of fragments)
        if (it?.type === 'custom') unread.push(`a call to the custom tool ${clippedName(String(it.custom?.name))}`)
      if (!calls.push(fragments.filter((it) => it?.type !== 'custom'))) return false
    }
    return typeof only !== 'object' || only === null || calls.push([{ index: 0, function: only }])
  }

  /** OpenRouter's form: readable text, and signatures or encrypted reasoning that only the provider can read. */
  const reasoningDetails = (list: readonly unknown[], textIsKnown: boolean) => {
    for (const detail of list as readonly Record<string, unknown>[]) {
      if (typeof detail !== 'object' || detail === null) continue
      const text = detail.text ?? detail.summary
      if (!textIsKnown && typeof text === 'string') append('thinking', text)
      thinkingBlock()
      details.add(detail)
    }
  }
  const thinkingBlock = () => (current?.type === 'thinking' ? current : open('thinking'))

  const reasoning = (delta: WireMessage) => {
    const text = delta.reasoning_content || delta.reasoning
    if (typeof text === 'string') append('thinking', text)
    if (Array.isArray(delta.reasoning_details)) reasoningDetails(delta.reasoning_details, typeof text === 'string')
  }
  const content = (delta: WireMessage) => {
    if (typeof delta.content === 'string') {
      if (delta.content !== '') answer(delta.content)
    } else if (Array.isArray(delta.content)) contentParts(delta.content)
    if (Array.isArray(delta.images)) for (const image of delta.images) addImage(image)
    if (delta.audio) unread.push('audio')
    if (typeof delta.refusal === 'string' && delta.refusal !== '') {
      refused = true
      append('text', delta.refusal)
    }
  }

  const noteUsage = (figures: unknown) => {
    if (tellsUsage(figures)) usage = figures
  }
  const noteModel = (frame: WireFrame) => {
    if (typeof frame.model === 'string' && frame.model !== '') answeredBy = clippedName(frame.model)
  }
  const noteEnd = (reason: unknown, frame: WireFrame, choice: WireChoice): WireFault | undefined => {
    if (typeof reason !== 'string' || reason === 'null') return undefined
    noteUsage(choice.usage)
    noteUsage(frame.x_groq?.usage)
    if (endReasonOf(reason) === 'broken')
      return { type: 'error', error: { code: reason, message: `it ended with ${reason}` } }
    wireReason = reason
    announceAll()
    const isAnswer = blocks.some((block) => block.type !== 'thinking')
    return unread.length > 0 && !isAnswer ? { type: 'unread', kinds: unread } : undefined
  }
  /** Of several answers (`n` above 1) the first one counts; null for a frame of another. */
  const choiceOf = (choices: WireFrame['choices']): WireChoice | null | undefined => {
    if (!Array.isArray(choices)) return undefined
    const [choice] = choices
    if (!choice) return undefined
    first ??= choice.index ?? 0
    if ((choice.index ?? 0) === first) return choice
    warnOfOthers(model)
    return choices.find((it) => it && (it.index ?? 0) === first) ?? null
  }
  const withoutChoice = (frame: WireFrame): WireFault | undefined => {
    noteModel(frame)
    noteUsage(frame.x_groq?.usage)
    return faultWithoutChoice(frame)
  }

  /** A whole message repeats the streamed one; only missing parts are read from it. */
  const wholeMessage = (message: WireMessage): boolean => {
    const seen = (type: OpenBlock['type']) => blocks.some((block) => block.type === type)
    const [text, thinking, call] = [seen('text'), seen('thinking'), seen('call')]
    if (!thinking) reasoning(message)
    if (!text && !(tags && thinking)) content(message)
    return call || addCalls(message)
  }

  return {
    get complete() {
      return wireReason !== undefined
    },
    // Some providers give no reason.
    get mayEnd() {
      return (blocks.length > 0 || calls.calls.length > 0) && calls.whole
    },
    // The end of the stream is `[DONE]`, which is not a frame.
    ended: false,
    get started() {
      return blocks.length > 0 || calls.calls.length > 0
    },
    frame(frame: WireFrame) {
      // Most frames hold one word: fields of only a first or last frame are looked for in those.
      if (frame.error) return { type: 'error', error: frame.error }
      if (frame.usage) noteUsage(frame.usage)
      const choice = choiceOf(frame.choices)
      if (choice === null) return undefined
      if (!choice) return withoutChoice(frame)
      const { delta, message, finish_reason: reason, error } = choice
      if (error) return { type: 'error', error }
      if (message && (!delta || frame.object === 'chat.completion')) {
        if (!wholeMessage(message)) return { type: 'calls' }
      } else if (delta) {
        reasoning(delta)
        content(delta)
        if ((delta.tool_calls || delta.function_call) && !addCalls(delta)) return { type: 'calls' }
      }
      if (answeredBy === undefined) noteModel(frame)
      return reason ? noteEnd(reason, frame, choice) : undefined
    },
    reply(finishReason) {
      tags?.end(finishReason === undefined)
      announceAll()
      if (finishReason === undefined) announceNameless()
      const finished = closeBlocks(blocks, details.text())
      const called = finished.some((block) => block.type === 'call')
      return {
        blocks: finished,
        ...(finishReason === undefined ? endedBy(wireReason, called, refused) : { finishReason }),
        usage: usage ? normaliseUsage(usage) : estimateUsage(request, finished),
        model: answeredBy ?? model,
      }
    },
  }
}

function faultWithoutChoice(frame: WireFrame): WireFault | undefined {
  if (typeof frame.output === 'object' && frame.output !== null) return { type: 'native' }
  const status = frame.base_resp?.status_code
  if (typeof status === 'number' && status !== 0) return { type: 'error', error: frame.base_resp }
  const says = frame.message ?? frame.detail
  return typeof says === 'string' && frame.choices === undefined ? { type: 'error', error: frame } : undefined
}

/** `signature`: sent back with the reasoning, and kept with its last block. */
function closeBlocks(blocks: readonly OpenBlock[], signature: string | undefined): Block[] {
  const signed = signature === undefined ? -1 : blocks.findLastIndex((block) => block.type === 'thinking')
  return blocks.map((block, at): Block => {
    if (block.type === 'data') return block
    if (block.type === 'call') {
      return { type: 'call', callId: '', tool: block.call.tool, arguments: block.call.parts.join('') }
    }
    const text = block.parts.join('')
    if (block.type === 'text') return { type: 'text', text }
    return { type: 'thinking', text, ...(at === signed && signature !== undefined ? { signature } : {}) }
  })
}
