// What a server answers, as blocks for the model. All of it is untrusted text: nothing here is read as an instruction.
import type { CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult } from '@modelcontextprotocol/client'
import type { InputBlock } from '@oxbow/core'

type ResourceContents = ReadResourceResult['contents'][number]

const text = (value: string): InputBlock => ({ type: 'text', text: value })

export function blocksOf({ content, structuredContent }: CallToolResult): InputBlock[] {
  const blocks = content.map(blockOf)
  if (
    structuredContent !== undefined &&
    !content.some((it) => it.type === 'text' && isSame(it.text, structuredContent))
  )
    blocks.push(text(JSON.stringify(structuredContent)))
  return blocks.length > 0 ? blocks : [text('Done, without a result.')]
}

/** Servers repeat the structured content as text for older clients. */
function isSame(json: string, value: unknown): boolean {
  try {
    return JSON.stringify(JSON.parse(json)) === JSON.stringify(value)
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

/** What an answer with `isError` says. */
export function errorText({ content }: CallToolResult): string {
  const said = content.map((it) => (it.type === 'text' ? it.text : '')).join('\n')
  return said.trim() === '' ? 'The tool failed without saying why.' : said.trim()
}
