// How long texts and messages are in tokens, where no provider has counted them.
import type { Message } from './events/types.ts'

/**
 * Tokens of a text by its characters: about four Latin characters, or one CJK character, to a token. Good to some 20 %;
 * meant for meters and limits, never for a bill.
 */
export function estimateTokens(text: string): number {
  let wide = 0
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) >= 0x2e80) wide++
  return Math.ceil((text.length - wide) / 4 + wide)
}

/** Tokens of a message, with a little for its frame. Each message is counted once. */
export function estimateMessageTokens(message: Message): number {
  let tokens = counts.get(message)
  if (tokens === undefined) {
    tokens = messageTokens(message)
    counts.set(message, tokens)
  }
  return tokens
}

const counts = new WeakMap<Message, number>()

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
