// A reply in the wire format of OpenAI's responses.
import type { Reply } from '../reply.ts'
import {
  type Body,
  countsOf,
  type Fragments,
  finishReasonOf,
  fragmentsOf,
  type ModelWire,
  namedFrame,
  objectsIn,
  plainContent,
  textIn,
  usageOf,
  type WireMessage,
  type WireOptions,
} from './wire.ts'

const incompleteReasons: Readonly<Record<string, string>> = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
}

export const openaiResponsesWire: ModelWire = {
  path: '/responses',

  frames(reply, options) {
    const fragments = fragmentsOf(reply, options)
    const items = itemsOf(reply, fragments, options)
    const frames: string[] = []
    const push = (event: { readonly type: string; readonly [field: string]: unknown }) => {
      frames.push(namedFrame({ ...event, sequence_number: frames.length } as never))
    }
    const running = { ...response(options), status: 'in_progress', output: [], usage: null }
    push({ type: 'response.created', response: running })
    push({ type: 'response.in_progress', response: running })
    for (const [index, item] of items.entries()) {
      const place = { item_id: item.id, output_index: index }
      push({ type: 'response.output_item.added', output_index: index, item: item.begun })
      for (const event of item.events) push({ ...event, ...place })
      push({ type: 'response.output_item.done', output_index: index, item: item.whole })
    }

    if (reply.error !== undefined) {
      push({ type: 'error', error: reply.error })
      return frames
    }
    const end = endOf(reply)
    if (end !== null && reply.done !== false) {
      const whole = wholeResponse(reply, fragments, options, items)
      push({ type: `response.${end.status}`, response: whole })
    }
    return frames
  },

  json(reply, options) {
    if (reply.error !== undefined) return JSON.stringify({ error: reply.error })
    const fragments = fragmentsOf(reply, options)
    return JSON.stringify(wholeResponse(reply, fragments, options, itemsOf(reply, fragments, options)))
  },

  messages(body) {
    const system = typeof body.instructions === 'string' ? [{ role: 'system', content: body.instructions }] : []
    if (typeof body.input === 'string') return [...system, { role: 'user', content: body.input }]
    return [...system, ...objectsIn(body.input).flatMap(chatMessage)]
  },

  tools: (body) =>
    objectsIn(body.tools).map((tool) => ({
      function: { name: String(tool.name ?? tool.type), parameters: tool.parameters },
    })),
}

interface Item {
  readonly id: string
  readonly begun: object
  readonly events: readonly { readonly type: string; readonly [field: string]: unknown }[]
  readonly whole: object
}

function itemsOf(reply: Reply, fragments: Fragments, options: WireOptions): Item[] {
  const items: Item[] = []
  const { thinking = '', text = '' } = reply
  if (thinking !== '') items.push(reasoningItem(thinking, fragments, reply, options))
  if (text !== '') items.push(messageItem(text, fragments, options))
  for (const [index, call] of fragments.calls.entries()) items.push(callItem(call, `fc_${options.id}_${index}`))
  return items
}

function reasoningItem(text: string, fragments: Fragments, reply: Reply, { id, body }: WireOptions): Item {
  const item = { id: `rs_${id}`, type: 'reasoning' }
  const part = { type: 'summary_text', text }
  const isSealed = Array.isArray(body.include) && body.include.includes('reasoning.encrypted_content')
  const at = { summary_index: 0 }
  return {
    id: item.id,
    begun: { ...item, summary: [] },
    events: [
      { type: 'response.reasoning_summary_part.added', ...at, part: { ...part, text: '' } },
      ...fragments.thinking.map((delta) => ({ type: 'response.reasoning_summary_text.delta', ...at, delta })),
      { type: 'response.reasoning_summary_text.done', ...at, text },
      { type: 'response.reasoning_summary_part.done', ...at, part },
    ],
    whole: {
      ...item,
      summary: [part],
      ...(isSealed ? { encrypted_content: reply.signature ?? `sealed-${id}` } : {}),
    },
  }
}

function messageItem(text: string, fragments: Fragments, { id }: WireOptions): Item {
  const item = { id: `msg_${id}`, type: 'message', role: 'assistant' }
  const part = { type: 'output_text', text, annotations: [], logprobs: [] }
  const at = { content_index: 0 }
  return {
    id: item.id,
    begun: { ...item, status: 'in_progress', content: [] },
    events: [
      { type: 'response.content_part.added', ...at, part: { ...part, text: '' } },
      ...fragments.text.map((delta) => ({ type: 'response.output_text.delta', ...at, delta, logprobs: [] })),
      { type: 'response.output_text.done', ...at, text, logprobs: [] },
      { type: 'response.content_part.done', ...at, part },
    ],
    whole: { ...item, status: 'completed', content: [part] },
  }
}

function callItem(call: Fragments['calls'][number], id: string): Item {
  const item = { id, type: 'function_call', call_id: call.id, name: call.name }
  return {
    id,
    begun: { ...item, status: 'in_progress', arguments: '' },
    events: [
      ...call.pieces.map((delta) => ({ type: 'response.function_call_arguments.delta', delta })),
      { type: 'response.function_call_arguments.done', arguments: call.arguments },
    ],
    whole: { ...item, status: 'completed', arguments: call.arguments },
  }
}

const response = ({ id, model }: WireOptions): object => ({
  id,
  object: 'response',
  created_at: 0,
  model,
  error: null,
  incomplete_details: null,
})

/** Null where the reply does not end. */
function endOf(reply: Reply): { status: string; incomplete_details: object | null } | null {
  const reason = finishReasonOf(reply)
  if (reason === null) return null
  const incomplete = incompleteReasons[reason]
  return incomplete === undefined
    ? { status: 'completed', incomplete_details: null }
    : { status: 'incomplete', incomplete_details: { reason: incomplete } }
}

function wholeResponse(reply: Reply, { count }: Fragments, options: WireOptions, items: readonly Item[]): object {
  const usage = usageOf(reply, count)
  const { input, cached, written, output, reasoning } = countsOf(usage)
  return {
    ...response(options),
    ...endOf(reply),
    output: items.map((item) => item.whole),
    usage:
      usage === null
        ? null
        : {
            input_tokens: input,
            input_tokens_details: { cached_tokens: cached, ...(written > 0 ? { cache_write_tokens: written } : {}) },
            output_tokens: output,
            output_tokens_details: { reasoning_tokens: reasoning },
            total_tokens: input + output,
          },
  }
}

/** Calls are separate items in this format. */
function chatMessage(item: Body): WireMessage[] {
  switch (item.type) {
    case 'function_call': {
      const call = { name: String(item.name), arguments: String(item.arguments) }
      return [{ role: 'assistant', content: '', tool_calls: [{ id: String(item.call_id), function: call }] }]
    }
    case 'function_call_output':
      return [{ role: 'tool', tool_call_id: String(item.call_id), content: plainContent(item.output) }]
    case 'reasoning':
      return []
  }
  const { role, content } = item
  return [{ role: String(role), content: role === 'assistant' ? textIn(content) : plainContent(content) }]
}
