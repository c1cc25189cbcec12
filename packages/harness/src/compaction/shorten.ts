// Long results and arguments become their beginning, their end and a reference to the whole.
import type { Block, CallBlock, InputBlock, Message, ResultBlock } from '@oxbow/core'

/** A text is only cut when that saves more than the notice costs, so a second cut changes nothing. */
const SLACK = 250

/**
 * An assistant or tool message with at most about `chars` characters in each result and argument. User messages are
 * unchanged. Pure; a message that is short enough is returned as the same object.
 */
export function shorten(message: Message, chars: number): Message {
  if (message.role === 'user') return message
  const blocks = message.blocks.map((it) => {
    if (it.type === 'result') return shortResult(it, chars)
    return it.type === 'call' ? shortCall(it, chars) : it
  })
  return blocks.every((it, n) => it === message.blocks[n]) ? message : { ...message, blocks }
}

function shortResult(result: ResultBlock, chars: number): Block {
  const texts = result.content.filter((it) => it.type === 'text')
  const text = texts.map((it) => it.text).join('\n')
  const long = text.length > chars + SLACK
  if (!long && texts.length === result.content.length) return result
  const reference = readAgain({ call: result.callId })
  const content: InputBlock[] = [
    ...(long ? [{ type: 'text' as const, text: cutMiddle(text, chars, reference) }] : texts),
    ...result.content.flatMap((it): InputBlock[] =>
      it.type === 'data' ? [{ type: 'text', text: `[${it.name ?? it.mediaType} omitted here; ${reference}]` }] : [],
    ),
  ]
  return { ...result, content }
}

/** Arguments stay valid JSON. Signed or unparsable arguments stay unchanged. */
function shortCall(call: CallBlock, chars: number): Block {
  if (call.signature !== undefined || call.arguments.length <= chars + SLACK) return call
  let value: unknown
  try {
    value = JSON.parse(call.arguments)
  } catch {
    return call
  }
  const text = JSON.stringify(shortValue(value, chars, readAgain({ call: call.callId })))
  return text.length < call.arguments.length ? { ...call, arguments: text } : call
}

function shortValue(value: unknown, chars: number, reference: string): unknown {
  if (typeof value === 'string') return value.length > chars + SLACK ? cutMiddle(value, chars, reference) : value
  if (Array.isArray(value)) return value.map((it) => shortValue(it, chars, reference))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, it]) => [name, shortValue(it, chars, reference)]))
}

/** How the agent reads the whole: a call of `session_read`. */
export const readAgain = (where: Readonly<Record<string, string>>): string =>
  `the whole: session_read ${JSON.stringify(where)}`

/** Beginning and end of a text, `chars` characters together, with a notice between them. Never cuts a character. */
export function cutMiddle(text: string, chars: number, reference: string): string {
  const head = text.slice(0, Math.ceil(chars * 0.7)).replace(/[\ud800-\udbff]$/, '')
  const tail = text.slice(text.length - Math.floor(chars * 0.3)).replace(/^[\udc00-\udfff]/, '')
  return `${head} […omitted here; ${reference}…] ${tail}`
}
