// From the events of a responses stream to deltas and one reply.
import type { Block, ModelDelta, ModelRequest } from '@oxbow/core'
import { clippedName } from '@oxbow/core/internal'
import { estimateUsage } from '../accounting/estimate.ts'
import { normaliseUsage, tellsUsage } from '../accounting/usage.ts'
import type { ReplyAssembler, WireFault } from '../wire/assembler.ts'
import { type Ended, endedBy } from '../wire/end-reason.ts'

/** An event, or a whole response that was not streamed. Any field may be missing, null or of another type. */
interface WireEvent {
  readonly type?: unknown
  readonly object?: unknown
  readonly response?: WireResponse | null
  readonly item?: WireItem | null
  readonly output_index?: unknown
  readonly item_id?: unknown
  readonly summary_index?: unknown
  readonly delta?: unknown
  readonly text?: unknown
  readonly refusal?: unknown
  readonly arguments?: unknown
  readonly error?: unknown
}

interface WireResponse {
  readonly model?: unknown
  readonly status?: unknown
  readonly output?: readonly (WireItem | null)[] | null
  readonly usage?: Readonly<Record<string, unknown>> | null
  readonly error?: unknown
  readonly incomplete_details?: { readonly reason?: unknown } | null
}

interface WireItem {
  readonly type?: unknown
  readonly id?: unknown
  readonly call_id?: unknown
  readonly name?: unknown
  readonly arguments?: unknown
  readonly summary?: readonly (WirePart | null)[] | null
  readonly content?: readonly (WirePart | null)[] | null
  readonly encrypted_content?: unknown
  readonly result?: unknown
  readonly output_format?: unknown
}

interface WirePart {
  readonly type?: unknown
  readonly text?: unknown
  readonly refusal?: unknown
}

/** An index in the reply. Events use the index: behind some gateways item ids change from event to event. */
interface OpenBlock {
  readonly type: 'text' | 'thinking' | 'call' | 'data'
  readonly item: unknown
  /** The latest part of a summary. */
  part: unknown
  readonly parts: string[]
  readonly place: number
  /** For a call. */
  tool: string
  callId: unknown
  /** For a file. */
  mediaType: string
  signature?: string
  redacted?: string
}

export interface ResponsesAssemblerOptions {
  readonly request: ModelRequest
  readonly model: string
  readonly onDelta: (delta: ModelDelta) => void
  readonly maxCalls?: number
}

export function assembleResponse(options: ResponsesAssemblerOptions): ReplyAssembler {
  const { request, model, onDelta, maxCalls = Number.POSITIVE_INFINITY } = options
  const blocks: OpenBlock[] = []
  let current: OpenBlock | undefined
  const ignored: string[] = []
  let calls = 0
  let refused = false
  let answeredBy: string | undefined
  let usage: Readonly<Record<string, unknown>> | undefined
  let ended = false
  let incomplete: unknown

  const open = (type: OpenBlock['type'], item: unknown): OpenBlock => {
    current = {
      type,
      item,
      part: undefined,
      parts: [],
      place: blocks.length,
      tool: '',
      callId: undefined,
      mediaType: '',
    }
    blocks.push(current)
    return current
  }
  const find = (type: OpenBlock['type'], item: unknown): OpenBlock | undefined =>
    isAt(current, type, item) ? current : blocks.findLast((block) => isAt(block, type, item))

  /**
   * Items that have started another part. The index of a part is unreliable: some servers increment it with each
   * fragment.
   */
  const nextPart = new Set<unknown>()
  const textBlock = (item: unknown) => (nextPart.has(item) ? undefined : find('text', item))
  const addText = (item: unknown, text: unknown) => {
    if (typeof text !== 'string' || text === '') return
    const block = textBlock(item) ?? open('text', item)
    nextPart.delete(item)
    block.parts.push(text)
    onDelta({ type: 'text', block: block.place, text })
  }
  const endText = (item: unknown, text: unknown) => addText(item, missing(textBlock(item), text))
  /** Parts that arrived as fragments, or with their own end event, are present already. */
  const endMessage = (item: unknown, { content }: WireItem) => {
    if (find('text', item)) return
    for (const part of listOf<WirePart>(content)) {
      if (part?.type === 'refusal') refused = true
      nextPart.add(item)
      addText(item, part?.text ?? part?.refusal)
    }
  }

  const addThinking = (item: unknown, part: unknown, text: unknown) => {
    if (typeof text !== 'string' || text === '') return
    const block = find('thinking', item) ?? open('thinking', item)
    // The parts of a summary are paragraphs.
    const piece = block.parts.length === 0 || block.part === part ? text : `\n\n${text}`
    block.part = part
    block.parts.push(piece)
    onDelta({ type: 'thinking', block: block.place, text: piece })
  }
  const endReasoning = (item: unknown, wire: WireItem) => {
    const { summary, content, encrypted_content: redacted, id } = wire
    if (!find('thinking', item)) {
      const parts = listOf<WirePart>(summary).length > 0 ? summary : content
      for (const [index, part] of listOf<WirePart>(parts).entries()) addThinking(item, index, part?.text)
    }
    const isSealed = typeof redacted === 'string' && redacted !== ''
    const block = find('thinking', item) ?? (isSealed ? open('thinking', item) : undefined)
    if (!block) return
    if (isSealed) block.redacted = redacted
    if (typeof id === 'string') block.signature = id
  }

  const openCall = (item: unknown, wire: WireItem): OpenBlock => {
    const known = find('call', item)
    // A gateway may number every call as the first.
    if (known && (wire.call_id === undefined || wire.call_id === known.callId)) return known
    calls++
    const call = open('call', item)
    call.callId = wire.call_id
    if (typeof wire.name === 'string') call.tool = clippedName(wire.name)
    onDelta({ type: 'call', block: call.place, tool: call.tool })
    addArguments(call, wire.arguments)
    return call
  }
  const addArguments = (call: OpenBlock, text: unknown) => {
    if (typeof text !== 'string' || text === '') return
    call.parts.push(text)
    onDelta({ type: 'arguments', block: call.place, text })
  }

  const addFile = (item: unknown, { result, output_format: format }: WireItem) => {
    if (typeof result !== 'string' || result === '' || find('data', item)) return
    const file = open('data', item)
    file.mediaType = `image/${typeof format === 'string' ? format : 'png'}`
    file.parts.push(result)
  }

  const endCall = (call: OpenBlock, text: unknown) => addArguments(call, missing(call, text))

  const endItem = (item: unknown, wire: WireItem) => {
    switch (wire.type) {
      case 'message':
        return endMessage(item, wire)
      case 'reasoning':
        return endReasoning(item, wire)
      case 'function_call':
        return endCall(openCall(item, wire), wire.arguments)
      case 'image_generation_call':
        return addFile(item, wire)
      default:
        // Provider tools and their results: their outcome is in the text of the answer.
        ignored.push(clippedName(String(wire.type)))
    }
  }

  const noteResponse = (response: WireResponse | null | undefined) => {
    if (typeof response?.model === 'string') answeredBy = clippedName(response.model)
    const figures = response?.usage && chatFigures(response.usage)
    if (tellsUsage(figures)) usage = figures
  }
  /** Content that only the final output holds. Matched by content: gateways number items arbitrarily. */
  const addMissing = (output: readonly (WireItem | null)[]) => {
    const come = (type: OpenBlock['type']) => blocks.filter((block) => block.type === type)
    let whole = ''
    for (const [index, wire] of output.entries()) {
      if (wire?.type === 'message') {
        for (const part of listOf<WirePart>(wire.content)) whole += String(part?.text ?? part?.refusal ?? '')
      } else if (wire?.type === 'function_call') {
        const known = come('call').find((call) => call.callId === wire.call_id)
        if (known) endCall(known, wire.arguments)
        else if (wire.call_id !== undefined) endCall(openCall(`#${index}`, wire), wire.arguments)
      }
    }
    const text = come('text')
      .flatMap((block) => block.parts)
      .join('')
    if (whole.length > text.length && whole.startsWith(text)) addText('#text', whole.slice(text.length))
  }
  const end = (response: WireResponse, isDocument = false): WireFault | undefined => {
    noteResponse(response)
    const output = listOf<WireItem>(response.output)
    if (blocks.length > 0) addMissing(output)
    else for (const [index, wire] of output.entries()) if (wire) endItem(index, wire)
    const { status = 'completed' } = response
    if (status === 'failed' || status === 'cancelled') return failure(response)
    // A document with any other status is not finished. An event's own type marks it as the last.
    if (isDocument && status !== 'completed' && status !== 'incomplete') return { type: 'cut' }
    ended = true
    incomplete = response.incomplete_details?.reason ?? (status === 'incomplete' ? 'incomplete' : undefined)
    const isAnswer = blocks.some((block) => block.type !== 'thinking')
    return ignored.length > 0 && !isAnswer ? { type: 'unread', kinds: ignored } : undefined
  }

  return {
    get complete() {
      return ended
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
      const { output_index: item = event.item_id ?? event.item?.id } = event
      switch (event.type) {
        case 'response.output_text.delta':
          return void addText(item, event.delta)
        case 'response.function_call_arguments.delta':
          return void addArguments(find('call', item) ?? openCall(item, {}), event.delta)
        case 'response.reasoning_summary_text.delta':
          return void addThinking(item, event.summary_index, event.delta)
        case 'response.reasoning_text.delta':
          return void addThinking(item, undefined, event.delta)
        case 'response.refusal.delta':
          refused = true
          return void addText(item, event.delta)
        case 'response.function_call_arguments.done':
          return void endCall(find('call', item) ?? openCall(item, {}), event.arguments)
        case 'response.output_text.done':
          return void endText(item, event.text)
        case 'response.refusal.done':
          refused = true
          return void endText(item, event.refusal)
        case 'response.content_part.added':
          return void nextPart.add(item)
        case 'response.output_item.added':
          if (event.item?.type === 'function_call') openCall(item, event.item)
          return calls > maxCalls ? { type: 'calls' } : undefined
        case 'response.output_item.done':
          if (event.item) endItem(item, event.item)
          return calls > maxCalls ? { type: 'calls' } : undefined
        case 'response.created':
        case 'response.in_progress':
        case 'response.queued':
          return void noteResponse(event.response)
        case 'response.completed':
        case 'response.incomplete':
          return end(event.response ?? {})
        case 'response.failed':
        case 'response.cancelled':
          return failure(event.response)
        // The message is inside the error, or next to the type.
        case 'error':
          return { type: 'error', error: event.error ?? event }
      }
      if (event.object === 'response') return end(event as WireResponse, true)
      return event.error === undefined || event.error === null ? undefined : { type: 'error', error: event.error }
    },
    reply(finishReason) {
      const finished = blocks.map(closeBlock)
      return {
        blocks: finished,
        ...(finishReason === undefined ? endOfResponse(incomplete, calls > 0, refused) : { finishReason }),
        usage: usage ? normaliseUsage(usage) : estimateUsage(request, finished),
        model: answeredBy ?? model,
      }
    },
  }
}

const isAt = (block: OpenBlock | undefined, type: OpenBlock['type'], item: unknown): boolean =>
  block?.type === type && block.item === item

/** The event that ends a part repeats all of it; this is the rest, where some or all fragments were lost. */
function missing(block: OpenBlock | undefined, whole: unknown): unknown {
  if (block === undefined || typeof whole !== 'string') return whole
  const come = block.parts.join('')
  return whole.startsWith(come) ? whole.slice(come.length) : ''
}

const listOf = <Value>(list: unknown): readonly (Value | null)[] => (Array.isArray(list) ? list : [])

const failure = (response: WireResponse | null | undefined): WireFault => ({
  type: 'error',
  error: response?.error ?? { message: 'The response failed and no reason was given.' },
})

/** The same usage under the names of chat completions. */
const chatFigures = (usage: Readonly<Record<string, unknown>>): Record<string, unknown> => ({
  prompt_tokens: usage.input_tokens,
  prompt_tokens_details: usage.input_tokens_details,
  completion_tokens: usage.output_tokens,
  completion_tokens_details: usage.output_tokens_details,
  total_tokens: usage.total_tokens,
})

function closeBlock(block: OpenBlock): Block {
  const text = block.parts.join('')
  switch (block.type) {
    case 'call':
      return { type: 'call', callId: '', tool: block.tool, arguments: text }
    case 'data':
      return { type: 'data', mediaType: block.mediaType, data: text }
    case 'text':
      return { type: 'text', text }
    case 'thinking':
      return {
        type: 'thinking',
        text,
        ...(block.signature === undefined ? {} : { signature: block.signature }),
        ...(block.redacted === undefined ? {} : { redacted: block.redacted }),
      }
  }
}

/** `incomplete` means a cut answer, whatever the reason. */
function endOfResponse(incomplete: unknown, called: boolean, refused: boolean): Ended {
  if (incomplete === undefined || incomplete === null) return endedBy(undefined, called, refused)
  const end = endedBy(String(incomplete), called)
  return end.finishReason === 'filtered' || end.finishReason === 'refusal' ? end : { ...end, finishReason: 'length' }
}
