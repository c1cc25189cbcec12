// Reads a program's standard output: one JSON-RPC message per line, and any other text that does not belong there.
import type { JSONRPCMessage } from '@modelcontextprotocol/client'
import { OxbowError } from '@oxbow/core'

export interface Noise {
  /** Lines without a message, or with more than a message. */
  readonly lines: number
  /** The last of them, shortened. */
  readonly last?: string
}

interface Listeners {
  readonly onMessage: (message: JSONRPCMessage) => void
  /** Stops reading. */
  readonly onTooLong: (error: OxbowError) => void
}

const LF = 10
const MAX_SHOWN = 120

/**
 * Splits output into messages. A byte order mark is skipped, a batch (2025-03-26) is read message by message, and a
 * message after a banner on the same line is found.
 *
 * @param limit the longest line, in bytes
 * @example stdoutReader(10_000_000, { onMessage: handle, onTooLong: fail }).read(chunk)
 */
export function stdoutReader(limit: number, { onMessage, onTooLong }: Listeners) {
  let held: Buffer[] = []
  let heldBytes = 0
  let lines = 0
  let last: string | undefined
  let isOver = false

  const noisy = (line: string): void => {
    lines++
    last = line.slice(0, MAX_SHOWN)
  }
  const take = (line: string): void => {
    const text = line.replace(/^\uFEFF/, '').trim()
    if (text === '') return
    const found = messagesOf(text)
    found.forEach(onMessage)
    if (found.length > 0) return
    noisy(text)
    const at = text.indexOf('{"jsonrpc"')
    if (at > 0) messagesOf(text.slice(at)).forEach(onMessage)
  }
  return {
    read(chunk: Buffer): void {
      let rest = chunk
      for (let end = rest.indexOf(LF); end !== -1 && !isOver; end = rest.indexOf(LF)) {
        if (heldBytes + end > limit) break
        const line = held.length === 0 ? rest.subarray(0, end) : Buffer.concat([...held, rest.subarray(0, end)])
        held = []
        heldBytes = 0
        rest = rest.subarray(end + 1)
        take(line.toString())
      }
      if (isOver || rest.length === 0) return
      held.push(rest)
      heldBytes += rest.length
      if (heldBytes <= limit) return
      isOver = true
      held = []
      onTooLong(new OxbowError('mcp_too_long', `The server sent a message of more than ${limit} bytes.`))
    },
    /** A banner without a line end counts too. */
    noise(): Noise {
      const open = Buffer.concat(held).subarray(0, MAX_SHOWN).toString().trim()
      if (open === '' || /^[{[]/.test(open)) return last === undefined ? { lines } : { lines, last }
      return { lines: lines + 1, last: open }
    },
  }
}

/** Validated as far as the library needs: it matches answers by id. */
function messagesOf(line: string): JSONRPCMessage[] {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return []
  }
  const all = Array.isArray(value) ? value : [value]
  return all.filter((it): it is JSONRPCMessage => typeof it === 'object' && it !== null && it.jsonrpc === '2.0')
}
