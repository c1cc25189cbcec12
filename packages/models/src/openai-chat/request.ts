// From a ModelRequest to the JSON text of a chat-completions request.
import { createHash } from 'node:crypto'
import type { CallBlock, DataBlock, Message, ModelRequest, ResultBlock, ToolSpec } from '@oxbow/core'
import { repairHistory } from '../history/repair-history.ts'
import { inputSchema, offerable } from '../requests/dialect.ts'
import { fileNote, fitted } from '../requests/files.ts'
import {
  wireCallId as anyCallId,
  noOutput,
  perObject,
  sortedByName,
  wireArguments,
  wireJson,
  wireToolName,
} from '../requests/write.ts'
import type { Quirks } from './quirks.ts'
import { readReasoningDetails } from './reasoning-details.ts'

/**
 * Makes the function that serialises requests for one model. The text of each message is cached by message object, so
 * that a long history costs a join and not a serialisation.
 */
export function chatRequestWriter(model: string, quirks: Quirks, id: string): (request: ModelRequest) => string {
  const textOf = perObject((message: Message) => wireMessages(message, quirks, id).map(wireJson).join(','))
  const toolText = perObject((tool: ToolSpec) =>
    wireJson({
      type: 'function',
      function: { name: wireToolName(tool.name), description: tool.description, parameters: inputSchema(tool) },
    }),
  )

  return (request) => {
    const parts: string[] = []
    const system = systemText(request, quirks)
    if (system !== '') parts.push(wireJson({ role: 'system', content: quirks.cacheMarks ? marked(system) : system }))
    const { messages } = repairHistory(request.messages, quirks)
    for (const message of withFilesLast(messages)) {
      const text = textOf(message)
      if (text !== '') parts.push(text)
    }
    if (quirks.cacheMarks && messages.at(-1)?.role !== 'assistant') markLast(parts)
    const { tools: further, messages: _, ...fields } = settings(request, quirks)
    const head = wireJson({ model, stream: true, ...fields })
    const texts = offerable(sortedByName(toolsOf(request, quirks)), id).map(toolText)
    if (Array.isArray(further)) texts.push(...further.map(wireJson))
    const tools = texts.length === 0 ? '' : `,"tools":[${texts.join(',')}]`
    return `${head.slice(0, -1)}${tools},"messages":[${parts.join(',')}]}`
  }
}

/** Text as a part that ends what is cached. */
const marked = (text: string): object[] => [{ type: 'text', text, cache_control: { type: 'ephemeral' } }]

function markLast(parts: string[]): void {
  const last = JSON.parse(parts.pop() ?? '{}')
  const content = typeof last.content === 'string' ? marked(last.content) : last.content
  parts.push(wireJson({ ...last, content }))
}

const toolsOf = ({ tools, toolChoice }: ModelRequest, quirks: Quirks): readonly ToolSpec[] =>
  quirks.toolChoice === 'auto' && toolChoice === 'none' ? [] : tools

function settings(request: ModelRequest, quirks: Quirks): Record<string, unknown> {
  const { toolChoice, output, options = {} } = request
  const settings: Record<string, unknown> = { ...options }
  if (quirks.includeUsage !== false) {
    settings.stream_options = { include_usage: true, ...(options.stream_options as object | undefined) }
  }
  if (request.temperature !== undefined) settings.temperature = request.temperature
  if (request.maxOutputTokens !== undefined) settings[quirks.maxTokensField ?? 'max_tokens'] = request.maxOutputTokens
  if (toolChoice !== undefined && toolsOf(request, quirks).length > 0) {
    if (quirks.toolChoice === 'auto' || typeof toolChoice === 'string') {
      settings.tool_choice = quirks.toolChoice ?? toolChoice
    } else settings.tool_choice = { type: 'function', function: { name: toolChoice.tool } }
  }
  if (output) {
    settings.response_format =
      quirks.output === 'json_object'
        ? { type: 'json_object' }
        : { type: 'json_schema', json_schema: { name: output.name, schema: output.schema, strict: false } }
  }
  return settings
}

function systemText(request: ModelRequest, quirks: Quirks): string {
  if (!request.output || quirks.output !== 'json_object') return request.system
  const rule = `Answer with one JSON object that satisfies this JSON Schema, and nothing else:\n${JSON.stringify(request.output.schema)}`
  return request.system === '' ? rule : `${request.system}\n\n${rule}`
}

function wireMessages(message: Message, quirks: Quirks, id: string): object[] {
  if (message.role === 'assistant') return assistantMessage(message, quirks, id)
  if (message.role === 'tool') return toolMessages(message, quirks)
  const content = userContent(message)
  return content.length === 0 ? [] : [{ role: 'user', content }]
}

function userContent(message: Message): string | object[] {
  if (message.blocks.every((block) => block.type === 'text')) return message.blocks.map((b) => b.text).join('\n\n')
  return message.blocks.flatMap((block): object[] => {
    if (block.type === 'text') return block.text === '' ? [] : [{ type: 'text', text: block.text }]
    return block.type === 'data' ? [dataPart(block)] : []
  })
}

function dataPart(block: DataBlock): object {
  const url = block.url ?? `data:${block.mediaType};base64,${block.data ?? ''}`
  const fit = fitted(block)
  if (fit.as === 'text') return { type: 'text', text: fit.text }
  if (fit.as === 'image') return { type: 'image_url', image_url: { url } }
  if (block.data === undefined) return { type: 'text', text: fileNote(block) }
  return { type: 'file', file: { filename: block.name ?? 'file', file_data: url } }
}

function assistantMessage(message: Message, quirks: Quirks, id: string): object[] {
  let text = ''
  let thinking = ''
  const calls: object[] = []
  for (const block of message.blocks) {
    if (block.type === 'text') text += block.text
    else if (block.type === 'thinking') thinking += block.text
    else if (block.type === 'call') calls.push(wireCall(block, quirks))
  }
  if (text === '' && calls.length === 0) return []
  const own = message.model === undefined || message.model === id
  const details = own
    ? message.blocks.flatMap((it) => (it.type === 'thinking' && readReasoningDetails(it.signature)) || [])
    : []
  const replay = quirks.replayReasoning === 'always' || (quirks.replayReasoning === 'with-calls' && calls.length > 0)
  if (quirks.replayReasoning === 'think-tags' && thinking !== '') text = `<think>\n${thinking}\n</think>\n\n${text}`
  return [
    {
      role: 'assistant',
      content: text === '' ? null : text,
      // Providers that expect it refuse a message without it, so older messages get an empty one.
      ...(replay ? { reasoning_content: thinking } : {}),
      ...(details.length > 0 ? { reasoning_details: details } : {}),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    },
  ]
}

function wireCall(block: CallBlock, quirks: Quirks): object {
  const { tool, callId } = block
  const args = wireArguments(block.arguments)
  return { id: wireCallId(callId, quirks), type: 'function', function: { name: wireToolName(tool), arguments: args } }
}

/**
 * The results of one answer are sent together: files follow them as a user message, so results in several messages
 * become one.
 */
function withFilesLast(messages: readonly Message[]): readonly Message[] {
  const hasFile = ({ role, blocks }: Message) =>
    role === 'tool' && blocks.some((it) => it.type === 'result' && it.content.some((part) => part.type === 'data'))
  const isSplit = messages.some((it, at) => hasFile(it) && messages[at + 1]?.role === 'tool')
  if (!isSplit) return messages
  const together: Message[] = []
  for (const message of messages) {
    const before = together.at(-1)
    if (message.role !== 'tool' || before?.role !== 'tool') together.push(message)
    else together[together.length - 1] = { ...before, blocks: [...before.blocks, ...message.blocks] }
  }
  return together
}

function toolMessages(message: Message, quirks: Quirks): object[] {
  const results = message.blocks.filter((block) => block.type === 'result')
  const images = results.flatMap((result) => result.content.filter((part) => part.type === 'data'))
  const wire: object[] = results.map((result) => ({
    role: 'tool',
    tool_call_id: wireCallId(result.callId, quirks),
    content: resultText(result),
  }))
  // A tool message may only hold text, so files follow as a user message.
  if (images.length > 0) wire.push({ role: 'user', content: images.map(dataPart) })
  return wire
}

function resultText(result: ResultBlock): string {
  const lines = result.content.map((part) =>
    part.type === 'text' ? part.text : `[${part.name ?? part.mediaType}: see the next message]`,
  )
  const text = lines.join('\n')
  return text === '' ? noOutput(result) : text
}

function wireCallId(callId: string, quirks: Quirks): string {
  if (quirks.callIds === 'nine') return createHash('sha256').update(callId).digest('hex').slice(0, 9)
  return anyCallId(callId)
}
