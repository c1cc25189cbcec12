// A reply in OpenAI's chat-completions wire format.
import type { Reply } from '../reply.ts'
import {
  type Fragments,
  finishReasonOf,
  fragmentsOf,
  type ModelWire,
  usageOf,
  type WireMessage,
  type WireTool,
} from './wire.ts'

export const openaiChatWire: ModelWire = {
  path: '/chat/completions',

  frames(reply, options) {
    const head = `data: {"id":${JSON.stringify(options.id)},"object":"chat.completion.chunk","created":0,"model":${JSON.stringify(options.model)},"choices":[`
    const choice = (delta: object, finishReason: string | null = null) =>
      `${head}${JSON.stringify({ index: 0, delta, finish_reason: finishReason })}]}\n\n`
    const { thinking, text, calls, count } = fragmentsOf(reply, options)
    const frames: string[] = []

    for (const piece of thinking) frames.push(choice({ reasoning_content: piece }))
    for (const piece of text) frames.push(choice({ content: piece }))
    for (const [index, { id, name, pieces }] of calls.entries()) {
      frames.push(choice({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }))
      for (const piece of pieces) frames.push(choice({ tool_calls: [{ index, function: { arguments: piece } }] }))
    }

    if (reply.error !== undefined) {
      frames.push(`data: ${JSON.stringify({ error: reply.error })}\n\n`)
      return frames
    }
    const finishReason = finishReasonOf(reply)
    if (finishReason !== null) frames.push(choice({}, finishReason))
    const usage = usageOf(reply, count)
    const asked = (options.body.stream_options as { include_usage?: boolean } | undefined)?.include_usage === true
    if (usage && asked) frames.push(`${head}],"usage":${JSON.stringify(usage)}}\n\n`)
    if (reply.done !== false) frames.push('data: [DONE]\n\n')
    return frames
  },

  json(reply, options) {
    if (reply.error !== undefined) return JSON.stringify({ error: reply.error })
    const fragments = fragmentsOf(reply, options)
    return JSON.stringify({
      id: options.id,
      object: 'chat.completion',
      created: 0,
      model: options.model,
      choices: [{ index: 0, message: wholeMessage(reply, fragments), finish_reason: finishReasonOf(reply) }],
      usage: usageOf(reply, fragments.count),
    })
  },

  messages: (body) => (body.messages ?? []) as readonly WireMessage[],
  tools: (body) => (body.tools ?? []) as readonly WireTool[],
}

const wholeMessage = (reply: Reply, { calls }: Fragments): object => ({
  role: 'assistant',
  content: reply.text ?? null,
  ...(reply.thinking === undefined ? {} : { reasoning_content: reply.thinking }),
  ...(calls.length === 0
    ? {}
    : {
        tool_calls: calls.map((call) => ({
          id: call.id,
          type: 'function',
          function: { name: call.name, arguments: call.arguments },
        })),
      }),
})
