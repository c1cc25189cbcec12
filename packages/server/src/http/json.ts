// Strict JSON parsing with a depth limit and the position of a syntax error. A number that a double cannot hold is
// refused: another one would reach the tools.
import { inexactNumber, parseExact } from '@oxbow/core/internal'
import { HttpError } from './errors.ts'

/** @throws HttpError 400 `invalid_json`, `json_too_deep` or `number_inexact` */
export function parseJson(text: string, maxDepth: number): unknown {
  const tooDeep = firstDeeperThan(text, maxDepth)
  if (tooDeep !== undefined)
    throw new HttpError(
      400,
      'json_too_deep',
      `The body is nested deeper than ${maxDepth} levels ${place(text, tooDeep)}.`,
    )
  const value = parsed(text)
  const lost = inexactNumber(value)
  if (lost !== undefined)
    throw new HttpError(
      400,
      'number_inexact',
      `The number ${lost.source.slice(0, 60)} at ${JSON.stringify(lost.path.slice(0, 200))} cannot be held exactly. Send it as a string.`,
    )
  return value
}

function parsed(text: string): unknown {
  try {
    return parseExact(text)
  } catch {
    const at = firstFault(text)
    const what = at >= text.length ? 'ends too early' : `has an unexpected ${describe(text, at)}`
    throw new HttpError(400, 'invalid_json', `The body is not valid JSON: it ${what} ${place(text, at)}.`)
  }
}

/** The position where the nesting of brackets, outside of strings, first exceeds the limit. */
function firstDeeperThan(text: string, maxDepth: number): number | undefined {
  let depth = 0
  let inString = false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (inString) {
      if (code === 92) i++
      else if (code === 34) inString = false
    } else if (code === 34) inString = true
    else if (code === 123 || code === 91) {
      if (++depth > maxDepth) return i
    } else if (code === 125 || code === 93) depth--
  }
  return undefined
}

const SPACE = /[ \t\n\r]*/y
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

const after = (pattern: RegExp, text: string, at: number): number | undefined => {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : undefined
}

/** The position where a text stops being valid JSON. Used only for messages: JSON.parse has already rejected it. */
function firstFault(text: string): number {
  const open: string[] = []
  // The tokens that may come next.
  let next: 'value' | 'value or ]' | 'key' | 'key or }' | ':' | ', or end' = 'value'
  let at = 0
  for (;;) {
    at = after(SPACE, text, at)!
    const sign = text[at]
    if (sign === undefined) return text.length
    const wantsValue: boolean = next === 'value' || next === 'value or ]'
    const wantsKey: boolean = next === 'key' || next === 'key or }'
    const closes: boolean = sign === open.at(-1) && (next === ', or end' || next.endsWith(sign))
    if (sign === '"' && (wantsValue || wantsKey)) {
      const { end, whole } = scanString(text, at)
      if (!whole) return end
      at = end
      next = wantsKey ? ':' : ', or end'
      continue
    }
    if (sign === '{' && wantsValue) {
      open.push('}')
      next = 'key or }'
    } else if (sign === '[' && wantsValue) {
      open.push(']')
      next = 'value or ]'
    } else if (closes) {
      open.pop()
      next = ', or end'
    } else if (sign === ':' && next === ':') next = 'value'
    else if (sign === ',' && next === ', or end' && open.length > 0) next = open.at(-1) === '}' ? 'key' : 'value'
    else {
      const end = wantsValue ? after(SCALAR, text, at) : undefined
      if (end === undefined) return at
      at = end
      next = ', or end'
      continue
    }
    at += 1
  }
}

/** The end of a string, or the position where it is invalid. */
function scanString(text: string, start: number): { end: number; whole: boolean } {
  let at = start + 1
  for (;;) {
    const code = text.charCodeAt(at)
    if (code === 34) return { end: at + 1, whole: true }
    // Also true past the end, where the code is NaN.
    if (!(code >= 32)) return { end: at, whole: false }
    const next = code === 92 ? after(ESCAPE, text, at) : at + 1
    if (next === undefined) return { end: at, whole: false }
    at = next
  }
}

const describe = (text: string, at: number): string => JSON.stringify(String.fromCodePoint(text.codePointAt(at)!))

function place(text: string, at: number): string {
  const before = text.slice(0, at)
  const line = before.split('\n').length
  return `at position ${at} (line ${line}, column ${at - before.lastIndexOf('\n')})`
}
