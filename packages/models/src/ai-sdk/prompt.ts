// From a ModelRequest to the call options of an AI SDK language model.
import type {
  LanguageModelV4CallOptions as CallOptions,
  LanguageModelV4FilePart as FilePart,
  LanguageModelV4FunctionTool as FunctionTool,
  LanguageModelV4Message as PromptMessage,
  LanguageModelV4TextPart as TextPart,
  LanguageModelV4ToolResultPart as ToolResultPart,
} from '@ai-sdk/provider'
import type { CallBlock, DataBlock, Message, ModelRequest, ResultBlock, ThinkingBlock, ToolSpec } from '@oxbow/core'
import { repairHistory } from '../history/repair-history.ts'
import { inputSchema, offerable } from '../requests/dialect.ts'
import { fileNote, fitted } from '../requests/files.ts'
import { noOutput, perObject, sortedByName, wireArguments, wireCallId, wireToolName } from '../requests/write.ts'
import { readSignature, readSignatureOf } from './signature.ts'

/** By media type (`image/*`, `*`): the URLs that the provider fetches itself. */
export type SupportedUrls = Readonly<Record<string, readonly RegExp[]>>

/**
 * Makes the function that writes requests for one model. `id`: the model whose reasoning and signatures are sent back.
 * The result for each message is cached by message object.
 */
export function promptWriter(id: string, urls: SupportedUrls): (request: ModelRequest) => CallOptions {
  const caches = isBedrock(id) && /claude/i.test(id)
  const messagesOf = perObject((message: Message) => promptMessages(message, id, urls))
  const toolOf = perObject(
    (tool: ToolSpec): FunctionTool => ({
      type: 'function',
      name: wireToolName(tool.name),
      description: tool.description,
      inputSchema: inputSchema(tool),
    }),
  )

  return ({ system, messages, tools, toolChoice, output, temperature, maxOutputTokens, options = {} }) => {
    // Gemini and Bedrock require a conversation to begin with a user message.
    const history = repairHistory(messages, { userFirst: true }).messages.flatMap(messagesOf)
    const offered = offerable(sortedByName(tools), id)
    const prompt: PromptMessage[] =
      system.trim() === '' ? history : [{ role: 'system', content: system.toWellFormed() }, ...history]
    return {
      ...options,
      prompt: caches ? withCachePoints(prompt) : prompt,
      ...(offered.length === 0 ? {} : { tools: offered.map(toolOf) }),
      ...(offered.length === 0 || toolChoice === undefined ? {} : { toolChoice: choiceOf(toolChoice) }),
      ...(output ? { responseFormat: { type: 'json', name: output.name, schema: output.schema } } : {}),
      ...(temperature === undefined ? {} : { temperature }),
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    }
  }
}

const choiceOf = (choice: NonNullable<ModelRequest['toolChoice']>): NonNullable<CallOptions['toolChoice']> =>
  typeof choice === 'string' ? { type: choice } : { type: 'tool', toolName: wireToolName(choice.tool) }

function promptMessages(message: Message, id: string, urls: SupportedUrls): PromptMessage[] {
  const others = othersOf(id)
  if (message.role === 'assistant') {
    const content = assistantParts(message, id)
    return content.length === 0 ? [] : [{ role: 'assistant', content }]
  }
  if (message.role === 'tool') {
    const results = message.blocks.filter((block) => block.type === 'result')
    return [{ role: 'tool', content: results.map((result) => resultPart(result, urls, others)) }]
  }
  const content = message.blocks.flatMap((block) =>
    block.type === 'text' ? [textPart(block.text)] : block.type === 'data' ? [dataPart(block, urls, others)] : [],
  )
  return content.length === 0 ? [] : [{ role: 'user', content }]
}

type AssistantPart = Extract<PromptMessage, { role: 'assistant' }>['content'][number]

function assistantParts(message: Message, id: string): AssistantPart[] {
  const own = (message.model ?? id) === id
  const parts: AssistantPart[] = []
  for (const block of message.blocks) {
    if (block.type === 'text') parts.push(textPart(block.text))
    // No provider fetches what a model is said to have made.
    else if (block.type === 'data') parts.push(dataPart(block, {}, othersOf(id)))
    else if (block.type === 'call') parts.push(callPart(block, own))
    else if (block.type === 'thinking' && own) addThinking(parts, block)
  }
  // Providers refuse a message that ends with reasoning whose continuation was cut off.
  return parts.slice(0, parts.findLastIndex((part) => part.type !== 'reasoning') + 1)
}

function addThinking(parts: AssistantPart[], block: ThinkingBlock): void {
  const signature = readSignatureOf(block)
  if (!signature) {
    const metadata = readSignature(block.signature)
    parts.push({
      type: 'reasoning',
      text: block.text.toWellFormed(),
      ...(metadata ? { providerOptions: metadata } : {}),
    })
    return
  }
  const providerOptions = signature.metadata
  const before = parts.at(-1)
  if (before?.type === signature.type && before.providerOptions === undefined) before.providerOptions = providerOptions
  else if (signature.type === 'text') parts.push({ type: 'text', text: '', providerOptions })
}

function callPart({ callId, tool, arguments: text, signature }: CallBlock, own: boolean): AssistantPart {
  const metadata = own ? readSignature(signature) : undefined
  return {
    type: 'tool-call',
    toolCallId: wireCallId(callId),
    toolName: wireToolName(tool),
    input: JSON.parse(wireArguments(text)),
    ...(metadata ? { providerOptions: metadata } : {}),
  }
}

function resultPart(result: ResultBlock, urls: SupportedUrls, others: RegExp | undefined): ToolResultPart {
  return {
    type: 'tool-result',
    toolCallId: wireCallId(result.callId),
    toolName: wireToolName(result.tool),
    output: outputOf(result, urls, others),
  }
}

function outputOf(result: ResultBlock, urls: SupportedUrls, others: RegExp | undefined): ToolResultPart['output'] {
  const parts = result.content.map((part) =>
    part.type === 'text' ? textPart(part.text) : dataPart(part, urls, others),
  )
  if (parts.some((part) => part.type === 'file')) return { type: 'content', value: parts }
  const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join('\n')
  return { type: result.status === 'success' ? 'text' : 'error-text', value: text === '' ? noOutput(result) : text }
}

const textPart = (text: string): TextPart => ({ type: 'text', text: text.toWellFormed() })

const isBedrock = (id: string): boolean => /^(amazon-)?bedrock:/.test(id)

/**
 * Claude reads again from its cache what stands before such a point: the tools and the system text, and all messages.
 */
const withCachePoints = (prompt: readonly PromptMessage[]): PromptMessage[] =>
  prompt.map((message, at) =>
    message.role === 'system' || (at === prompt.length - 1 && message.role === 'user')
      ? { ...message, providerOptions: { bedrock: { cachePoint: { type: 'default' } } } }
      : at === prompt.length - 1 && message.role === 'tool'
        ? {
            ...message,
            content: message.content.map((part, place, all) => (place === all.length - 1 ? marked(part) : part)),
          }
        : message,
  )

const marked = <Part extends object>(part: Part): Part => ({
  ...part,
  providerOptions: { bedrock: { cachePoint: { type: 'default' } } },
})

const othersOf = (id: string): RegExp | undefined => (isBedrock(id) ? undefined : ofGoogle)

/** Formats that Gemini accepts besides images and PDF. Bedrock refuses them. */
const ofGoogle = /^(audio|video)\//

function dataPart(block: DataBlock, urls: SupportedUrls, others: RegExp | undefined): FilePart | TextPart {
  const { data, url, mediaType, name } = block
  const named = name === undefined ? {} : { filename: name }
  const fit = fitted(block, others)
  if (fit.as === 'text' && data !== undefined) return textPart(fit.text)
  if (data !== undefined) return { type: 'file', mediaType, data: { type: 'data', data }, ...named }
  if (url !== undefined && isSupported(url, mediaType, urls)) {
    return { type: 'file', mediaType, data: { type: 'url', url: new URL(url) }, ...named }
  }
  // Not fetched here, because the URL may lead to hosts that only this machine can reach. The note tells the model
  // that there was a file.
  return textPart(fileNote(block))
}

const isSupported = (url: string, mediaType: string, urls: SupportedUrls): boolean =>
  URL.canParse(url) &&
  Object.entries(urls).some(
    ([types, patterns]) =>
      (types === '*' ||
        types === '*/*' ||
        mediaType === types ||
        mediaType.startsWith(types.replace(/\*$/, '/').replace('//', '/'))) &&
      patterns.some((pattern) => new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, '')).test(url)),
  )
