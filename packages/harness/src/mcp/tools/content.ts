// A server's answer as blocks for the model. All of it is untrusted text, never an instruction to the engine.
import { isDeepStrictEqual } from 'node:util'
import type { CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult } from '@modelcontextprotocol/client'
import type { InputBlock } from '@oxbow/core'

type ResourceContents = ReadResourceResult['contents'][number]

const text = (value: string): InputBlock => ({ type: 'text', text: value })

export function blocksOf({ content, structuredContent }: CallToolResult): InputBlock[] {
  const blocks = content.map(blockOf)
  const texts = content.flatMap((it) => (it.type === 'text' ? [it.text] : []))
  if (structuredContent !== undefined && !isRepeated(structuredContent, texts))
    blocks.push(text(JSON.stringify(structuredContent)))
  return blocks.length > 0 ? blocks : [text('Done, without a result.')]
}

/**
 * Servers repeat the structured content as text for older clients: whole, or the value alone where a library has
 * wrapped it in `{ "result": … }`; a list also as one text for each item.
 */
function isRepeated(value: unknown, texts: readonly string[]): boolean {
  const isText = (it: unknown): boolean => texts.some((one) => says(one, it))
  if (isText(value)) return true
  const keys = typeof value === 'object' && value !== null ? Object.keys(value) : []
  if (keys.length !== 1 || keys[0] !== 'result') return false
  const { result } = value as { result: unknown }
  if (isText(result)) return true
  return Array.isArray(result) && result.length === texts.length && result.every((it, at) => says(texts[at]!, it))
}

function says(written: string, value: unknown): boolean {
  if (typeof value === 'string' && value.trim() === written.trim()) return true
  try {
    return isDeepStrictEqual(JSON.parse(written), value)
  } catch {
    return false
  }
}

function blockOf(block: ContentBlock): InputBlock {
  switch (block.type) {
    case 'text':
      return text(block.text)
    case 'image':
    case 'audio':
      return { type: 'data', mediaType: block.mimeType, data: block.data }
    case 'resource':
      return contentsOf(block.resource)
    case 'resource_link': {
      const { name, uri, mimeType, description } = block
      const about = [mimeType, description].filter((it) => it !== undefined).join(', ')
      return text(`Resource ${name}: ${uri}${about === '' ? '' : ` (${about})`}`)
    }
  }
}

function contentsOf(contents: ResourceContents): InputBlock {
  if ('text' in contents) return text(`Resource ${contents.uri}:\n${contents.text}`)
  const { uri, mimeType: mediaType = 'application/octet-stream', blob } = contents
  return { type: 'data', mediaType, data: blob, name: uri }
}

export function resourceBlocks({ contents }: ReadResourceResult): InputBlock[] {
  return contents.length > 0 ? contents.map(contentsOf) : [text('The resource is empty.')]
}

export function promptBlocks({ description, messages }: GetPromptResult): InputBlock[] {
  const blocks = messages.flatMap(({ role, content }) => [text(`${role}:`), blockOf(content)])
  return description === undefined ? blocks : [text(description), ...blocks]
}

/** The text of an answer with `isError`. */
export function errorText({ content }: CallToolResult): string {
  const said = content.map((it) => (it.type === 'text' ? it.text : '')).join('\n')
  return said.trim() === '' ? 'The tool failed without saying why.' : said.trim()
}
