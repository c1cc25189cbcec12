// From a ModelRequest to the JSON text of a chat-completions request.
import { createHash } from 'node:crypto'
import type { CallBlock, DataBlock, Message, ModelRequest, ResultBlock, ToolSpec } from '@oxbow/core'
import { repairHistory } from '../history/repair-history.ts'
import type { Quirks } from './quirks.ts'

/**
 * Makes the function that serialises requests for one model. The text of each message is kept with the message object,
 * so that a long history costs a join and not a serialisation.
 */
export function chatRequestWriter(model: string, quirks: Quirks): (request: ModelRequest) => string {
  const messageText = new WeakMap<Message, string>()
  const toolText = new WeakMap<ToolSpec, string>()

  const textOf = (message: Message): string => {
    let text = messageText.get(message)
    if (text === undefined) {
      const wire = wireMessages(message, quirks).map(wireJson)
      text = wire.join(',')
      messageText.set(message, text)
    }
    return text
  }

  return (request) => {
    const parts: string[] = []
    const system = systemText(request, quirks)
    if (system !== '') parts.push(wireJson({ role: 'system', content: system }))
    const { messages } = repairHistory(request.messages, quirks)
    for (const message of messages) {
      const text = textOf(message)
      if (text !== '') parts.push(text)
    }
    const head = wireJson({ model, stream: true, ...settings(request, quirks) })
    const tools = request.tools.length === 0 ? '' : `,"tools":[${toolTexts(request.tools, toolText).join(',')}]`
    return `${head.slice(0, -1)}${tools},"messages":[${parts.join(',')}]}`
  }
}

function settings(request: ModelRequest, quirks: Quirks): Record<string, unknown> {
  const { tools, toolChoice, output, options = {} } = request
  const settings: Record<string, unknown> = { ...options }
  if (quirks.includeUsage !== false) {
    settings.stream_options = { include_usage: true, ...(options.stream_options as object | undefined) }
  }
  if (request.temperature !== undefined) settings.temperature = request.temperature
  if (request.maxOutputTokens !== undefined) settings[quirks.maxTokensField ?? 'max_tokens'] = request.maxOutputTokens
  if (toolChoice !== undefined && tools.length > 0) {
    settings.tool_choice =
      typeof toolChoice === 'string' ? toolChoice : { type: 'function', function: { name: toolChoice.tool } }
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

/** Sorted by name: providers cache the prompt by its prefix, and the tools come first in it. */
function toolTexts(tools: readonly ToolSpec[], cache: WeakMap<ToolSpec, string>): string[] {
  const sorted = [...tools].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
  return sorted.map((tool) => {
    let text = cache.get(tool)
    if (text === undefined) {
      text = wireJson({
        type: 'function',
        function: { name: tool.name, description: tool.description, parameters: tool.input },
      })
      cache.set(tool, text)
    }
    return text
  })
}

function wireMessages(message: Message, quirks: Quirks): object[] {
  if (message.role === 'assistant') return assistantMessage(message, quirks)
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
  if (block.mediaType.startsWith('image/')) return { type: 'image_url', image_url: { url } }
  if (block.data === undefined) return { type: 'text', text: `[file ${block.name ?? ''} ${block.mediaType} ${url}]` }
  return { type: 'file', file: { filename: block.name ?? 'file', file_data: url } }
}

function assistantMessage(message: Message, quirks: Quirks): object[] {
  let text = ''
  let thinking = ''
  const calls: object[] = []
  for (const block of message.blocks) {
    if (block.type === 'text') text += block.text
    else if (block.type === 'thinking') thinking += block.text
    else if (block.type === 'call') calls.push(wireCall(block, quirks))
  }
  if (text === '' && calls.length === 0) return []
  const replay = quirks.replayReasoning === 'always' || (quirks.replayReasoning === 'with-calls' && calls.length > 0)
  return [
    {
      role: 'assistant',
      content: text === '' ? null : text,
      // Providers that want it refuse a message without it, so older messages get an empty one.
      ...(replay ? { reasoning_content: thinking } : {}),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    },
  ]
}

function wireCall(block: CallBlock, quirks: Quirks): object {
  // A provider refuses the whole history for one call whose arguments are no object or whose name no tool could have.
  // Such a call was never run, and its result tells the model why.
  const args = isJsonObject(block.arguments) ? wellFormed(block.arguments) : '{}'
  const name = wireToolName(block.tool)
  return { id: wireCallId(block.callId, quirks), type: 'function', function: { name, arguments: args } }
}

/** The same name always becomes the same text; a valid one stays as it is. */
const wireToolName = (name: string): string => name.replace(/[^\w-]/gu, '_').slice(0, 64) || '_'

function toolMessages(message: Message, quirks: Quirks): object[] {
  const results = message.blocks.filter((block) => block.type === 'result')
  const images = results.flatMap((result) => result.content.filter((part) => part.type === 'data'))
  const wire: object[] = results.map((result) => ({
    role: 'tool',
    tool_call_id: wireCallId(result.callId, quirks),
    content: resultText(result),
  }))
  // A tool message may hold text only, so the files follow as a user message.
  if (images.length > 0) wire.push({ role: 'user', content: images.map(dataPart) })
  return wire
}

function resultText(result: ResultBlock): string {
  const lines = result.content.map((part) =>
    part.type === 'text' ? part.text : `[${part.name ?? part.mediaType}: see the next message]`,
  )
  const text = lines.join('\n')
  return text === '' ? `(${result.status}, no output)` : text
}

function wireCallId(callId: string, quirks: Quirks): string {
  if (quirks.callIds === 'nine') return createHash('sha256').update(callId).digest('hex').slice(0, 9)
  if (/^[\w-]{1,40}$/.test(callId)) return callId
  return createHash('sha256').update(callId).digest('hex').slice(0, 40)
}

/** Providers refuse a whole request for one lone surrogate, which a cut through a character leaves. */
const wireJson = (value: unknown): string => wellFormed(JSON.stringify(value))

/** JSON text with U+FFFD in the place of each lone surrogate, whether it stands there or is written as an escape. */
function wellFormed(json: string): string {
  const text = json.toWellFormed()
  if (!/\\ud/i.test(text)) return text
  return text.replace(/(\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w)|\\u[dD][89a-fA-F]\w\w|\\./g, (found, pair) =>
    pair === undefined && found.length > 2 ? '\\ufffd' : found,
  )
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}
