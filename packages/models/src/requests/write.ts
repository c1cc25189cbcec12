// What every request writer needs: JSON that providers accept, names and ids within their rules, texts cached by
// object.
import { createHash } from 'node:crypto'
import type { ResultBlock, ToolSpec } from '@oxbow/core'

/** Providers refuse a whole request for one lone surrogate, which is left by a cut through a character. */
export const wireJson = (value: unknown): string => wellFormed(JSON.stringify(value))

/** JSON text with U+FFFD in place of each lone surrogate, literal or escaped. */
export function wellFormed(json: string): string {
  const text = json.toWellFormed()
  if (!/\\ud/i.test(text)) return text
  return text.replace(/(\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w)|\\u[dD][89a-fA-F]\w\w|\\./g, (found, pair) =>
    pair === undefined && found.length > 2 ? '\\ufffd' : found,
  )
}

/**
 * The arguments of a call as the JSON text of an object. A provider refuses the whole history for one call with other
 * arguments; such a call never ran, and its result gives the model the reason.
 */
export const wireArguments = (text: string): string => (isJsonObject(text) ? wellFormed(text) : '{}')

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

/** The same name always becomes the same text; a valid one is unchanged. */
export const wireToolName = (name: string): string => name.replace(/[^\w-]/gu, '_').slice(0, 64) || '_'

/** Up to 40 of `A-Za-z0-9_-`, which every provider accepts. */
export const wireCallId = (callId: string): string =>
  /^[\w-]{1,40}$/.test(callId) ? callId : createHash('sha256').update(callId).digest('hex').slice(0, 40)

/** Replaces a result without content. */
export const noOutput = (result: ResultBlock): string => `(${result.status}, no output)`

/** Sorted by name: providers cache the prompt by prefix, and the tools come first in it. */
export const sortedByName = (tools: readonly ToolSpec[]): readonly ToolSpec[] =>
  [...tools].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))

/** Caches the result for each object, so that a long history costs a join and not a serialisation. */
export function perObject<Key extends object, Value>(make: (of: Key) => Value): (of: Key) => Value {
  const made = new WeakMap<Key, Value>()
  return (of) => {
    let value = made.get(of)
    if (value === undefined) {
      value = make(of)
      made.set(of, value)
    }
    return value
  }
}
