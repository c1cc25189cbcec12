// From a ModelRequest to the JSON text of a request of OpenAI's responses format.
import type { CallBlock, DataBlock, Message, ModelRequest, ResultBlock, ThinkingBlock, ToolSpec } from '@oxbow/core'
import { repairHistory } from '../history/repair-history.ts'
import { inputSchema, offerable } from '../requests/dialect.ts'
import { fitted } from '../requests/files.ts'
import {
  noOutput,
  perObject,
  sortedByName,
  wireArguments,
  wireCallId,
  wireJson,
  wireToolName,
} from '../requests/write.ts'

export interface ResponsesWriterOptions {
  /** The provider's name for the model. */
  readonly model: string
  /** The id that signs its messages. */
  readonly id: string
  /** Whether encrypted reasoning is requested. */
  readonly reasoning: boolean
}

/**
 * Makes the function that serialises requests for one model. The provider stores nothing: the whole history is sent,
 * including encrypted reasoning. The text of each message is cached by message object, so that a long history costs a
 * join and not a serialisation.
 */
export function responsesRequestWriter(options: ResponsesWriterOptions): (request: ModelRequest) => string {
  const textOf = perObject((message: Message) => inputItems(message, options.id).map(wireJson).join(','))
  const toolText = perObject((tool: ToolSpec) =>
    wireJson({
      type: 'function',
      name: wireToolName(tool.name),
      description: tool.description,
      parameters: inputSchema(tool),
      strict: false,
    }),
  )

  return (request) => {
    const { tools: furtherTools, ...further } = request.options ?? {}
    const tools = offerable(sortedByName(request.tools), options.id).map(toolText)
    if (Array.isArray(furtherTools)) tools.push(...furtherTools.map(wireJson))
    const { messages } = repairHistory(request.messages)
    const items = messages.map(textOf).filter((text) => text !== '')
    const head = wireJson({
      model: options.model,
      stream: true,
      store: false,
      ...further,
      ...settingsOf(request, options.reasoning),
      ...(request.system.trim() === '' ? {} : { instructions: request.system }),
    })
    const toolList = tools.length === 0 ? '' : `,"tools":[${tools.join(',')}]`
    return `${head.slice(0, -1)}${toolList},"input":[${items.join(',')}]}`
  }
}

const sealed = 'reasoning.encrypted_content'

function settingsOf(request: ModelRequest, reasoning: boolean): Record<string, unknown> {
  const { tools, toolChoice, output, options = {}, temperature, maxOutputTokens } = request
  const include = Array.isArray(options.include) ? options.include : []
  return {
    ...(reasoning ? { include: [...new Set([...include, sealed])] } : {}),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxOutputTokens === undefined ? {} : { max_output_tokens: maxOutputTokens }),
    ...(toolChoice === undefined || tools.length === 0
      ? {}
      : {
          tool_choice:
            typeof toolChoice === 'string' ? toolChoice : { type: 'function', name: wireToolName(toolChoice.tool) },
        }),
    ...(output === undefined
      ? {}
      : {
          text: {
            ...(options.text as object),
            format: { type: 'json_schema', name: wireToolName(output.name), schema: output.schema, strict: false },
          },
        }),
  }
}

function inputItems(message: Message, id: string): object[] {
  if (message.role === 'assistant') return assistantItems(message, id)
  if (message.role === 'tool') {
    return message.blocks.flatMap((block) => (block.type === 'result' ? [resultItem(block)] : []))
  }
  const content = message.blocks.flatMap(inputContent)
  return content.length === 0 ? [] : [{ role: 'user', content }]
}

function inputContent(block: Message['blocks'][number]): object[] {
  if (block.type === 'text') return block.text === '' ? [] : [{ type: 'input_text', text: block.text }]
  return block.type === 'data' ? [inputData(block)] : []
}

function inputData(block: DataBlock): object {
  const { mediaType, name, data, url } = block
  const address = url ?? `data:${mediaType};base64,${data ?? ''}`
  const fit = fitted(block)
  if (fit.as === 'text') return { type: 'input_text', text: fit.text }
  if (fit.as === 'image') return { type: 'input_image', image_url: address, detail: 'auto' }
  if (url !== undefined) return { type: 'input_file', file_url: url }
  return { type: 'input_file', filename: name ?? 'file', file_data: address }
}

/** In order: the API requires reasoning to be followed by the output it led to. */
function assistantItems(message: Message, id: string): object[] {
  const own = message.model === undefined || message.model === id
  const blocks = message.blocks.filter((block) => block.type !== 'thinking' || (own && block.redacted !== undefined))
  const end = blocks.findLastIndex((block) => block.type !== 'thinking') + 1
  return blocks.slice(0, end).map((block): object => {
    switch (block.type) {
      case 'thinking':
        return reasoningItem(block)
      case 'call':
        return callItem(block)
      case 'data':
        // Only a user may send files; the note tells the model that it made one.
        return { role: 'assistant', content: `[file ${[block.name, block.mediaType].filter(Boolean).join(' ')}]` }
      default:
        return { role: 'assistant', content: block.type === 'text' ? block.text : '' }
    }
  })
}

const reasoningItem = ({ text, signature, redacted }: ThinkingBlock): object => ({
  type: 'reasoning',
  ...(signature === undefined ? {} : { id: signature }),
  summary: text === '' ? [] : [{ type: 'summary_text', text }],
  encrypted_content: redacted,
})

const callItem = (block: CallBlock): object => ({
  type: 'function_call',
  call_id: wireCallId(block.callId),
  name: wireToolName(block.tool),
  arguments: wireArguments(block.arguments),
})

function resultItem(result: ResultBlock): object {
  const hasFiles = result.content.some((part) => part.type === 'data')
  const text = result.content.map((part) => (part.type === 'text' ? part.text : '')).join('\n')
  const output = hasFiles ? result.content.flatMap(inputContent) : text === '' ? noOutput(result) : text
  return { type: 'function_call_output', call_id: wireCallId(result.callId), output }
}
