// A reply in Anthropic's messages wire format.
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

const stopReasons: Readonly<Record<string, string>> = { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use' }

export const anthropicWire: ModelWire = {
  path: '/messages',

  frames(reply, options) {
    const fragments = fragmentsOf(reply, options)
    const usage = figuresOf(reply, fragments)
    const start = { ...message(options), content: [], stop_reason: null, usage: { ...usage, output_tokens: 0 } }
    const frames = [namedFrame({ type: 'message_start', message: start } as never)]
    let index = 0
    const block = (start: object, deltas: readonly object[]) => {
      const events = [
        { type: 'content_block_start', index, content_block: start },
        ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
        { type: 'content_block_stop', index },
      ]
      frames.push(...events.map(namedFrame))
      index++
    }
    if (fragments.thinking.length > 0) {
      block({ type: 'thinking', thinking: '', signature: '' }, [
        ...fragments.thinking.map((thinking) => ({ type: 'thinking_delta', thinking })),
        { type: 'signature_delta', signature: signatureOf(reply, options) },
      ])
    }
    if (fragments.text.length > 0) {
      const deltas = fragments.text.map((text) => ({ type: 'text_delta', text }))
      block({ type: 'text', text: '' }, deltas)
    }
    for (const { id, name, pieces } of fragments.calls) {
      const deltas = pieces.map((piece) => ({ type: 'input_json_delta', partial_json: piece }))
      block({ type: 'tool_use', id, name, input: {} }, deltas)
    }

    if (reply.error !== undefined) return [...frames, namedFrame({ type: 'error', error: reply.error } as never)]
    const stop = stopOf(reply)
    if (stop !== null) frames.push(namedFrame({ type: 'message_delta', delta: stop, usage } as never))
    if (reply.done !== false) frames.push(namedFrame({ type: 'message_stop' }))
    return frames
  },

  json(reply, options) {
    if (reply.error !== undefined) return JSON.stringify({ type: 'error', error: reply.error })
    const fragments = fragmentsOf(reply, options)
    const { thinking, text } = reply
    return JSON.stringify({
      ...message(options),
      content: [
        ...(thinking ? [{ type: 'thinking', thinking, signature: signatureOf(reply, options) }] : []),
        ...(text ? [{ type: 'text', text }] : []),
        ...fragments.calls.map(({ id, name, arguments: args }) => ({
          type: 'tool_use',
          id,
          name,
          input: parsedInput(args),
        })),
      ],
      ...stopOf(reply),
      usage: figuresOf(reply, fragments),
    })
  },

  messages(body) {
    const system = body.system === undefined ? [] : [{ role: 'system', content: textIn(body.system) }]
    return [...system, ...objectsIn(body.messages).flatMap(chatMessages)]
  },

  tools: (body) =>
    objectsIn(body.tools).map((tool) => ({ function: { name: String(tool.name), parameters: tool.input_schema } })),
}

const message = ({ id, model }: WireOptions): object => ({ id, type: 'message', role: 'assistant', model })

const signatureOf = (reply: Reply, { id }: WireOptions): string => reply.signature ?? `signature-${id}`

function stopOf(reply: Reply): object | null {
  const reason = finishReasonOf(reply)
  return reason === null ? null : { stop_reason: stopReasons[reason] ?? reason, stop_sequence: null }
}

function figuresOf(reply: Reply, { count }: Fragments): object {
  const { input, cached, written, output, reasoning } = countsOf(usageOf(reply, count))
  return {
    input_tokens: input - cached - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: cached,
    output_tokens: output,
    ...(reasoning > 0 ? { output_tokens_details: { thinking_tokens: reasoning } } : {}),
  }
}

/** A message that is not streamed cannot hold arguments that are not JSON. */
function parsedInput(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

/** In chat completions each result in a user's message is its own message. */
function chatMessages({ role, content }: Body): WireMessage[] {
  const blocks = objectsIn(content)
  const calls = blocks.filter((block) => block.type === 'tool_use')
  const results = blocks.filter((block) => block.type === 'tool_result')
  const rest =
    typeof content === 'string' ? content : blocks.filter((it) => !calls.includes(it) && !results.includes(it))
  const messages: WireMessage[] = results.map((result) => ({
    role: 'tool',
    tool_call_id: String(result.tool_use_id),
    content: plainContent(result.content),
  }))
  if (rest.length === 0 && calls.length === 0) return messages
  const toolCalls = calls.map(({ id, name, input }) => ({
    id: String(id),
    function: { name: String(name), arguments: JSON.stringify(input) },
  }))
  messages.push({
    role: String(role),
    content: role === 'assistant' ? textIn(rest) : plainContent(rest),
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
  })
  return messages
}
