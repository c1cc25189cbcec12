// A reply in OpenAI's chat-completions wire format.
import type { Reply, WireUsage } from './reply.ts'

export interface WireOptions {
  readonly id: string
  readonly model: string
  readonly includeUsage: boolean
  /** Characters per fragment of text, thinking and arguments. */
  readonly chunkChars: number | undefined
}

/** The SSE frames of a reply, each with its blank line. */
export function replyFrames(reply: Reply, options: WireOptions): string[] {
  const head = `data: {"id":${JSON.stringify(options.id)},"object":"chat.completion.chunk","created":0,"model":${JSON.stringify(options.model)},"choices":[`
  const choice = (delta: object, finishReason: string | null = null) =>
    `${head}${JSON.stringify({ index: 0, delta, finish_reason: finishReason })}]}\n\n`
  const frames: string[] = []

  for (const piece of pieces(reply.thinking, options.chunkChars)) frames.push(choice({ reasoning_content: piece }))
  for (const piece of pieces(reply.text, options.chunkChars, reply.chunks)) frames.push(choice({ content: piece }))
  wireCalls(reply, options.id).forEach((call, index) => {
    const { name } = call.function
    frames.push(choice({ tool_calls: [{ index, id: call.id, type: 'function', function: { name, arguments: '' } }] }))
    for (const piece of pieces(call.function.arguments, options.chunkChars)) {
      frames.push(choice({ tool_calls: [{ index, function: { arguments: piece } }] }))
    }
  })

  if (reply.error !== undefined) {
    frames.push(`data: ${JSON.stringify({ error: reply.error })}\n\n`)
    return frames
  }
  const fragments = frames.length
  const finishReason = finishReasonOf(reply)
  if (finishReason !== null) frames.push(choice({}, finishReason))
  const usage = usageOf(reply, fragments)
  if (usage && options.includeUsage) frames.push(`${head}],"usage":${JSON.stringify(usage)}}\n\n`)
  if (reply.done !== false) frames.push('data: [DONE]\n\n')
  return frames
}

/** The same reply for a request without `stream`. */
export function replyJson(reply: Reply, options: WireOptions): string {
  if (reply.error !== undefined) return JSON.stringify({ error: reply.error })
  const calls = wireCalls(reply, options.id)
  return JSON.stringify({
    id: options.id,
    object: 'chat.completion',
    created: 0,
    model: options.model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: reply.text ?? null,
          ...(reply.thinking === undefined ? {} : { reasoning_content: reply.thinking }),
          ...(calls.length === 0 ? {} : { tool_calls: calls }),
        },
        finish_reason: finishReasonOf(reply),
      },
    ],
    usage: usageOf(reply, calls.length + pieces(reply.text, options.chunkChars, reply.chunks).length),
  })
}

function wireCalls(reply: Reply, id: string) {
  return (reply.calls ?? []).map((call, index) => ({
    id: call.id ?? `call_${id}_${index}`,
    type: 'function',
    function: {
      name: call.name,
      arguments: typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments ?? {}),
    },
  }))
}

const finishReasonOf = (reply: Reply): string | null =>
  reply.finishReason === undefined ? (reply.calls?.length ? 'tool_calls' : 'stop') : reply.finishReason

function usageOf(reply: Reply, fragments: number): WireUsage | null {
  if (reply.usage !== undefined) return reply.usage
  return { prompt_tokens: 10, completion_tokens: fragments, total_tokens: 10 + fragments }
}

function pieces(text: string | undefined, chars: number | undefined, count?: number): string[] {
  if (!text) return []
  if (count === undefined && chars === undefined) return text.match(/\s*\S+\s*$|\s*\S+|\s+$/gu) ?? []
  const points = [...text]
  const size = Math.max(1, count === undefined ? chars! : Math.ceil(points.length / count))
  const result: string[] = []
  for (let i = 0; i < points.length; i += size) result.push(points.slice(i, i + size).join(''))
  return result
}
