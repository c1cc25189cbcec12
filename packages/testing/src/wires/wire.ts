// What a wire format must offer, and helpers that all formats share.
import type { Reply, WireUsage } from '../reply.ts'

export interface ModelWire {
  /** The end of its URL path. */
  readonly path: string
  /** The SSE frames of a reply, each with its blank line. */
  frames(reply: Reply, options: WireOptions): string[]
  /** The same reply for a request without `stream`. */
  json(reply: Reply, options: WireOptions): string
  /** The conversation of a request, converted to chat completions, so that one script serves every format. */
  messages(body: Body): readonly WireMessage[]
  tools(body: Body): readonly WireTool[]
}

export type Body = Readonly<Record<string, unknown>>

export interface WireMessage {
  readonly role: string
  readonly content?: unknown
  readonly tool_calls?: readonly WireCall[]
  readonly tool_call_id?: string
  readonly [field: string]: unknown
}

interface WireCall {
  readonly id: string
  readonly function: { readonly name: string; readonly arguments: string }
}

export interface WireTool {
  readonly function: { readonly name: string; readonly parameters?: unknown }
}

export interface WireOptions {
  readonly id: string
  readonly model: string
  /** The request. */
  readonly body: Body
  /** Characters per fragment of text, thinking and arguments. */
  readonly chunkChars: number | undefined
}

export interface Fragments {
  readonly thinking: readonly string[]
  readonly text: readonly string[]
  readonly calls: readonly { id: string; name: string; arguments: string; pieces: readonly string[] }[]
  /** The default number of output tokens. */
  readonly count: number
}

export function fragmentsOf(reply: Reply, { id, chunkChars }: WireOptions): Fragments {
  const thinking = pieces(reply.thinking, chunkChars)
  const text = pieces(reply.text, chunkChars, reply.chunks)
  const calls = (reply.calls ?? []).map((call, index) => {
    const args = typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments ?? {})
    return { id: call.id ?? `call_${id}_${index}`, name: call.name, arguments: args, pieces: pieces(args, chunkChars) }
  })
  const count = thinking.length + text.length + calls.reduce((sum, call) => sum + 1 + call.pieces.length, 0)
  return { thinking, text, calls, count }
}

/** The name in chat completions. */
export const finishReasonOf = (reply: Reply): string | null =>
  reply.finishReason === undefined ? (reply.calls?.length ? 'tool_calls' : 'stop') : reply.finishReason

export function usageOf(reply: Reply, fragments: number): WireUsage | null {
  if (reply.usage !== undefined) return reply.usage
  return { prompt_tokens: 10, completion_tokens: fragments, total_tokens: 10 + fragments }
}

/** Usage in chat completions, split for the other formats. */
export function countsOf(usage: WireUsage | null): {
  input: number
  cached: number
  written: number
  output: number
  reasoning: number
} {
  const { prompt_tokens: input = 0, completion_tokens: output = 0 } = usage ?? {}
  const prompt = (usage?.prompt_tokens_details ?? {}) as Record<string, number | undefined>
  const completion = (usage?.completion_tokens_details ?? {}) as Record<string, number | undefined>
  const { cached_tokens: cached = 0, cache_write_tokens: written = 0 } = prompt
  return { input, cached, written, output, reasoning: completion.reasoning_tokens ?? 0 }
}

/** An event named by its type, as Anthropic and OpenAI's responses send it. */
export const namedFrame = (event: { readonly type: string }): string =>
  `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`

/** The objects in a list that a request holds. */
export const objectsIn = (list: unknown): readonly Body[] =>
  Array.isArray(list) ? list.filter((it) => typeof it === 'object' && it !== null) : []

/** The text of content that is a string or a list of parts. */
export const textIn = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : objectsIn(content)
        .map((part) => (typeof part.text === 'string' ? part.text : ''))
        .join('')

/** Text-only content as text; other content unchanged. */
export const plainContent = (content: unknown): unknown =>
  objectsIn(content).every((part) => typeof part.text === 'string') ? textIn(content) : content

function pieces(text: string | undefined, chars: number | undefined, count?: number): string[] {
  if (!text) return []
  if (count === undefined && chars === undefined) return text.match(/\s*\S+\s*$|\s*\S+|\s+$/gu) ?? []
  const points = [...text]
  const size = Math.max(1, count === undefined ? chars! : Math.ceil(points.length / count))
  const result: string[] = []
  for (let i = 0; i < points.length; i += size) result.push(points.slice(i, i + size).join(''))
  return result
}
