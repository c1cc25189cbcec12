// Strict JSON parsing with a depth limit. A number that a double cannot hold is refused: another one would reach the
// tools.
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
  } catch (error) {
    throw new HttpError(400, 'invalid_json', `The body is not valid JSON: ${(error as Error).message}.`)
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

function place(text: string, at: number): string {
  const before = text.slice(0, at)
  const line = before.split('\n').length
  return `at position ${at} (line ${line}, column ${at - before.lastIndexOf('\n')})`
}
