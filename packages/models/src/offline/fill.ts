// Fills a tool's parameters from the words of a question.
import type { ToolSpec } from '@oxbow/core'
import {
  findCode,
  findDate,
  findEmail,
  findExpression,
  findNumbers,
  findPath,
  findPlace,
  findQuoted,
  findTimeZone,
  findUrl,
} from './find.ts'
import { plainSchema, type SampledSchema, sampleOf } from './sample.ts'
import { wordsOf } from './words.ts'

/** Kinds of values by parameter name. */
const finders: readonly (readonly [RegExp, (text: string) => string | undefined])[] = [
  [/expression|formula|equation/, findExpression],
  [/time_?zone|^tz$|^zone$/, findTimeZone],
  [/city|location|place|town|region|country/, findPlace],
  [/url|link|uri/, findUrl],
  [/e_?mail|^to$|recipient/, findEmail],
  [/path|file/, findPath],
  [/date|day/, findDate],
  [/(^|_)id$|number|code|^sku/, findCode],
]

/**
 * The arguments of one call, or undefined when a required one cannot be found. With `force` missing ones are made up by
 * type, for a caller that demands this tool.
 */
export function fillArguments(tool: ToolSpec, question: string, force: boolean): Record<string, unknown> | undefined {
  const schema = plainSchema(tool.input, tool.input)
  const properties = Object.entries(schema.properties ?? {})
  const required = new Set(schema.required ?? [])
  // A tool whose parameters are all optional still needs a subject.
  if (required.size === 0 && properties.length === 1) required.add(properties[0]![0])
  const numbers = findNumbers(question)
  const quoted = findQuoted(question)
  const texts = properties.filter(
    ([name, property]) => required.has(name) && isFreeText(plainSchema(property, tool.input)),
  )
  const filled: Record<string, unknown> = {}

  const find = (name: string, property: SampledSchema, isRequired: boolean): unknown => {
    if (property.enum) {
      return property.enum.find((value) => question.toLowerCase().includes(String(value).toLowerCase()))
    }
    if (property.type === 'number' || property.type === 'integer') return isRequired ? numbers.shift() : undefined
    if (property.type === 'array' && isRequired) return findList(property, tool.input, question, tool)
    if (property.type !== 'string') return undefined
    const key = name.replace(/([a-z])([A-Z])/g, '$1_$2').toLowerCase()
    const finder = finders.find(([pattern]) => pattern.test(key))
    const found = finder?.[1](question)
    if (found !== undefined || !isRequired) return found
    if (quoted.length > 0) return quoted.shift()
    return finder === undefined && texts.length === 1 ? subjectOf(question, tool) : undefined
  }

  for (const [name, raw] of properties) {
    const property = plainSchema(raw, tool.input)
    let value = find(name, property, required.has(name))
    if (value === undefined && required.has(name)) {
      value = property.default ?? property.enum?.[0]
      if (value === undefined && (force || property.type === 'boolean'))
        value = sampleOf(property, question, '', tool.input)
      if (value === undefined) return undefined
    }
    if (value !== undefined) filled[name] = value
  }
  return filled
}

const isFreeText = (schema: SampledSchema): boolean => schema.type === 'string' && schema.enum === undefined

function findList(
  property: SampledSchema,
  root: SampledSchema,
  question: string,
  tool: ToolSpec,
): unknown[] | undefined {
  const items = plainSchema(property.items ?? {}, root)
  if (items.type === 'number' || items.type === 'integer') {
    const numbers = findNumbers(question)
    return numbers.length > 0 ? numbers : undefined
  }
  if (items.type !== 'string') return undefined
  const quoted = findQuoted(question)
  if (quoted.length > 0) return quoted
  return subjectOf(question, tool)
    .split(/\s*(?:,|、|\uff0c|\band\b|和)\s*/)
    .filter((part) => part !== '')
}

/**
 * The rest of the sentence after the last word that named the tool, or after a colon: `search for red boats` → `red
 * boats`.
 */
function subjectOf(question: string, tool: ToolSpec): string {
  const name = new Set(wordsOf(tool.name.replaceAll('_', ' ')))
  let end = 0
  for (const match of question.matchAll(/[A-Za-z]+|[\u3400-\u9fff]{2}/g)) {
    if (wordsOf(match[0]).some((word) => name.has(word))) end = match.index + match[0].length
  }
  if (end === 0) end = Math.max(0, question.search(/[:\uff1a]\s*\S/))
  const rest = question
    .slice(end)
    .replace(/^[\s:,\uff1a\uff0c]*(?:(?:(?:for|about|the|to|of|that|me|with)\b|一下|关于)\s*)*/i, '')
    .replace(/[\s?.!。\uff1f\uff01]+$/, '')
  return rest === '' ? question.trim() : rest
}
