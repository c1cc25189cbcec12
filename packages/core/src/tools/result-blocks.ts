// A tool's result as blocks for the model. What JSON would lose without a word is an error that names its place.
import { ToolError } from '../errors.ts'
import { isInputBlock } from '../events/blocks.ts'
import type { InputBlock } from '../events/types.ts'

/** A longer result would block the process for seconds: return pages or a reference. In characters. */
const MAX_RESULT_LENGTH = 16 * 1024 * 1024
const MAX_DEPTH = 200

/**
 * Text and blocks unchanged, anything else as JSON.
 *
 * @throws ToolError naming the place of what is not JSON: a Map, a Promise, NaN, an Error inside of the result
 * @throws the result itself if it is an Error
 */
export function resultBlocks(result: unknown): InputBlock[] {
  if (result instanceof Error) throw result
  if (result === undefined) return [{ type: 'text', text: 'Done.' }]
  if (Array.isArray(result) && result.length > 0 && result.every(isInputBlock)) return result.map(cleanBlock)
  if (typeof result === 'bigint') return [{ type: 'text', text: String(result) }]
  const budget = { left: MAX_RESULT_LENGTH }
  const text = typeof result === 'string' ? result : JSON.stringify(jsonOf(result, 'result', 0, budget))
  if (text.length > MAX_RESULT_LENGTH) throw tooLong()
  return [{ type: 'text', text }]
}

const tooLong = (): ToolError =>
  new ToolError(`the result is longer than ${MAX_RESULT_LENGTH} characters. Return a page of it, or a reference.`)

/**
 * A copy of the value as JSON writes it.
 *
 * @throws ToolError naming the place of what is not JSON
 */
export const jsonCopy = (value: unknown, path: string): unknown => jsonOf(value, path, 0, { left: MAX_RESULT_LENGTH })

function jsonOf(value: unknown, path: string, depth: number, budget: { left: number }): unknown {
  if (depth > MAX_DEPTH)
    throw new ToolError(`${path.slice(0, 100)}… is nested more than ${MAX_DEPTH} levels deep, or contains itself`)
  budget.left -= typeof value === 'string' ? value.length : 1
  if (budget.left < 0) throw tooLong()
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') {
    if (Number.isFinite(value)) return value
    throw new ToolError(`${path} is ${value}, which is not JSON`)
  }
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'object') throw new ToolError(`${path} is a ${typeof value}, which is not JSON`)
  if (value instanceof Date && Number.isNaN(value.getTime()))
    throw new ToolError(`${path} is an invalid Date, which is not JSON`)
  if ('toJSON' in value && typeof value.toJSON === 'function') return jsonOf(value.toJSON(), path, depth + 1, budget)
  if (Array.isArray(value)) return value.map((it, index) => jsonOf(it ?? null, `${path}[${index}]`, depth + 1, budget))
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer)
    throw new ToolError(`${path} holds bytes. Return a data block: { type: 'data', mediaType, data } with base64.`)
  const entries = Object.entries(value).filter(([, it]) => it !== undefined && typeof it !== 'function')
  const prototype: unknown = Object.getPrototypeOf(value)
  // JSON writes {} for a Map, a Promise or an Error: none of them has fields that can be listed.
  if (value instanceof Error || (entries.length === 0 && prototype !== Object.prototype && prototype !== null))
    throw new ToolError(`${path} is a ${value.constructor?.name ?? 'special object'}, which is not JSON`)
  return Object.fromEntries(entries.map(([name, it]) => [name, jsonOf(it, `${path}.${name}`, depth + 1, budget)]))
}

/** The fields that a block has, and nothing else that a tool may have added to it. */
function cleanBlock(block: InputBlock): InputBlock {
  if (block.type === 'text') return { type: 'text', text: block.text }
  const { mediaType, data, url, name } = block
  const texts = Object.entries({ data, url, name }).filter(([, it]) => typeof it === 'string')
  return { type: 'data', mediaType, ...Object.fromEntries(texts) }
}
