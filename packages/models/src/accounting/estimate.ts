import type { Block, Message, ModelRequest, Usage } from '@oxbow/core'

/**
 * Tokens of a text by its characters: about four Latin characters, or one CJK character, to a token. Good to some 20 %;
 * meant for meters and limits, never for a bill.
 */
export function estimateTokens(text: string): number {
  let wide = 0
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) >= 0x2e80) wide++
  return Math.ceil((text.length - wide) / 4 + wide)
}

/** Tokens of a request: its text, with a little for the frame of each message. Messages are counted once. */
export function estimateRequestTokens(request: ModelRequest): number {
  let tokens = estimateTokens(request.system)
  for (const tool of request.tools) {
    tokens += counted(tool, () => estimateTokens(tool.name + tool.description + JSON.stringify(tool.input)))
  }
  for (const message of request.messages) tokens += counted(message, () => messageTokens(message))
  return tokens
}

const counts = new WeakMap<object, number>()

function counted(of: object, count: () => number): number {
  let tokens = counts.get(of)
  if (tokens === undefined) {
    tokens = count()
    counts.set(of, tokens)
  }
  return tokens
}

function messageTokens(message: Message): number {
  let tokens = 4
  for (const block of message.blocks) {
    if (block.type === 'text' || block.type === 'thinking') tokens += estimateTokens(block.text)
    else if (block.type === 'call') tokens += estimateTokens(block.tool + block.arguments)
    else if (block.type === 'data') tokens += dataTokens
    else for (const part of block.content) tokens += part.type === 'text' ? estimateTokens(part.text) : dataTokens
  }
  return tokens
}

/** What providers charge for an image of usual size; the bytes of a file say nothing about it. */
const dataTokens = 800

/** The usage of a call whose provider gave no figures. */
export function estimateUsage(request: ModelRequest, blocks: readonly Block[]): Usage {
  let output = 0
  let reasoning = 0
  for (const block of blocks) {
    if (block.type === 'text') output += estimateTokens(block.text)
    else if (block.type === 'call') output += estimateTokens(block.tool + block.arguments)
    else if (block.type === 'thinking') reasoning += estimateTokens(block.text)
  }
  return {
    inputTokens: estimateRequestTokens(request),
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: output + reasoning,
    reasoningTokens: reasoning,
    estimated: true,
  }
}
