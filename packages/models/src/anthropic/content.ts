// One Oxbow message as content blocks of Anthropic's messages format, as JSON text.
import type { Block, CallBlock, DataBlock, Message, ResultBlock, ThinkingBlock } from '@oxbow/core'
import { noOutput, wellFormed, wireArguments, wireCallId, wireJson, wireToolName } from '../requests/write.ts'

export interface AnthropicContent {
  /** The blocks, joined by commas; empty when no part of the message may be sent. */
  readonly text: string
  readonly startsWithThinking: boolean
}

/** Which reasoning is sent back. */
export interface Replay {
  /** The id of the target model: reasoning of other models is not sent. */
  readonly model: string
  /** Includes reasoning without a signature, for providers that do not sign. */
  readonly unsigned: boolean
}

/** `replay` undefined: no reasoning at all. */
export function contentOf(message: Message, replay: Replay | undefined): AnthropicContent {
  const blocks = message.role === 'assistant' ? assistantBlocks(message, replay) : message.blocks
  return {
    text: blocks
      .map(blockText)
      .filter((text) => text !== '')
      .join(','),
    startsWithThinking: blocks[0]?.type === 'thinking',
  }
}

function assistantBlocks(message: Message, replay: Replay | undefined): readonly Block[] {
  const own = replay !== undefined && (message.model ?? replay.model) === replay.model
  const kept = message.blocks.filter((block) => block.type !== 'thinking' || (own && maySend(block, replay)))
  // The API refuses a message that ends with reasoning whose continuation was cut off.
  return kept.slice(0, kept.findLastIndex((block) => block.type !== 'thinking') + 1)
}

const maySend = (block: ThinkingBlock, replay: Replay): boolean =>
  block.redacted !== undefined || block.signature !== undefined || replay.unsigned

function blockText(block: Block): string {
  switch (block.type) {
    case 'text':
      return wireJson({ type: 'text', text: block.text })
    case 'thinking':
      return wireJson(thinkingBlock(block))
    case 'call':
      return callText(block)
    case 'result':
      return wireJson(resultBlock(block))
    case 'data':
      return wireJson(dataBlock(block))
  }
}

const thinkingBlock = ({ text, signature = '', redacted }: ThinkingBlock): object =>
  redacted === undefined
    ? { type: 'thinking', thinking: text, signature }
    : { type: 'redacted_thinking', data: redacted }

/** The arguments are JSON already. */
function callText(block: CallBlock): string {
  const head = JSON.stringify({ type: 'tool_use', id: wireCallId(block.callId), name: wireToolName(block.tool) })
  return `${head.slice(0, -1)},"input":${wireArguments(block.arguments)}}`
}

function resultBlock(result: ResultBlock): object {
  // An empty text is refused.
  const content = result.content.flatMap((part): object[] => {
    if (part.type === 'data') return [dataBlock(part)]
    return part.text.trim() === '' ? [] : [{ type: 'text', text: part.text }]
  })
  return {
    type: 'tool_result',
    tool_use_id: wireCallId(result.callId),
    content: content.length === 0 ? noOutput(result) : content,
    ...(result.status === 'success' ? {} : { is_error: true }),
  }
}

const readableImage = /^image\/(jpeg|png|gif|webp)$/

function dataBlock(block: DataBlock): object {
  const { mediaType, data, url, name } = block
  const title = name === undefined ? {} : { title: name }
  if (readableImage.test(mediaType)) return { type: 'image', source: source(block) }
  if (mediaType === 'application/pdf') return { type: 'document', source: source(block), ...title }
  if (mediaType.startsWith('text/') && data !== undefined) {
    const text = wellFormed(Buffer.from(data, 'base64').toString())
    if (text.trim() !== '')
      return { type: 'document', source: { type: 'text', media_type: 'text/plain', data: text }, ...title }
  }
  // The note keeps the model aware of a file, even one that it cannot open.
  return { type: 'text', text: `[file ${[name, mediaType, url].filter(Boolean).join(' ')}]` }
}

const source = ({ url, mediaType, data = '' }: DataBlock): object =>
  url === undefined ? { type: 'base64', media_type: mediaType, data } : { type: 'url', url }
