// How long texts and messages are in tokens, where no provider has counted them.
import type { Message } from './types.ts'

/**
 * Tokens of a text by its characters: words, digits, signs and line breaks each cost about what the tokenizers of today
 * make of them. Good to some 15 % for OpenAI's `o200k_base`; others differ by more. Meant for meters and limits, never
 * for a bill.
 */
export function estimateTokens(text: string): number {
  let tokens = 0
  let before = SPACE
  /** Characters of the same kind so far. */
  let run = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    const kind = code < 128 ? ASCII[code]! : code >= 0x2e80 ? WIDE : OTHER
    run = kind === before ? run + 1 : 1
    before = kind
    if (kind === LETTER) tokens += run === 1 ? 1 : run > 6 ? 0.18 : 0.03
    else if (kind === DIGIT) tokens += run % 3 === 1 ? 1 : 0.1
    else if (kind === SIGN) tokens += run === 1 ? 0.6 : 0.35
    // A space goes with the word behind it; a line break is a token together with what indents the next line.
    else if (kind === SPACE) tokens += code === 10 && run === 1 ? 0.9 : 0
    else tokens += kind === WIDE ? 0.68 : 0.28
  }
  return text === '' ? 0 : Math.max(1, Math.round(tokens))
}

const LETTER = 0
const DIGIT = 1
const SIGN = 2
const SPACE = 3
/** Chinese, Japanese, Korean and emoji. */
const WIDE = 4
/** Other letters beyond ASCII: Cyrillic, Arabic, accents. */
const OTHER = 5

const ASCII: readonly number[] = Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code)
  return /[a-z]/i.test(character) ? LETTER : /\d/.test(character) ? DIGIT : /\s/.test(character) ? SPACE : SIGN
})

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

/** The usual token count of an image; it does not depend on the size of the file. */
const dataTokens = 800
