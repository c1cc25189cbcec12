// A value that satisfies a simple JSON Schema.
import { findNumbers } from './find.ts'

export interface SampledSchema {
  readonly type?: string
  readonly properties?: Readonly<Record<string, SampledSchema>>
  readonly required?: readonly string[]
  readonly enum?: readonly unknown[]
  readonly items?: SampledSchema
  readonly default?: unknown
  readonly [keyword: string]: unknown
}

/** Resolves local references, alternatives and lists of types to one schema with a type. */
export function plainSchema(schema: unknown, root: unknown): SampledSchema {
  let current = (typeof schema === 'object' && schema !== null ? schema : {}) as SampledSchema
  for (let depth = 0; depth < 16; depth++) {
    const alternatives = (current.anyOf ?? current.oneOf ?? current.allOf) as SampledSchema[] | undefined
    if (typeof current.$ref === 'string') current = lookUp(current.$ref, root)
    else if (Array.isArray(alternatives)) current = alternatives.find((each) => each.type !== 'null') ?? {}
    else break
  }
  const types = current.type as unknown
  if (Array.isArray(types)) return { ...current, type: types.find((type) => type !== 'null') ?? 'null' }
  return current.type === undefined && current.properties ? { ...current, type: 'object' } : current
}

function lookUp(reference: string, root: unknown): SampledSchema {
  let value = root
  for (const part of reference.replace(/^#\/?/, '').split('/'))
    value = (value as Record<string, unknown> | undefined)?.[part]
  return (value ?? {}) as SampledSchema
}

/**
 * Fills a schema: required fields only, the first value of an enumeration, numbers and texts from the results or the
 * question. Patterns are not supported.
 */
export function sampleOf(
  schema: unknown,
  question: string,
  results: string,
  root: unknown = schema,
  depth = 0,
): unknown {
  const plain = plainSchema(schema, root)
  if ('const' in plain) return plain.const
  if (plain.enum) return plain.enum[0]
  if (plain.default !== undefined) return plain.default
  const source = results || question
  switch (plain.type) {
    case 'object': {
      const required = depth < 16 ? (plain.required ?? []) : []
      return Object.fromEntries(
        required.map((name) => [name, sampleOf(plain.properties?.[name], question, results, root, depth + 1)]),
      )
    }
    case 'array':
      return Array.from({ length: bound(plain.minItems) ?? 0 }, () =>
        sampleOf(plain.items, question, results, root, depth + 1),
      )
    case 'number':
    case 'integer':
      return number(plain, findNumbers(results)[0] ?? findNumbers(question)[0] ?? 0)
    case 'boolean':
      return false
    case 'null':
      return null
    default:
      return text(plain, source)
  }
}

function number(schema: SampledSchema, wanted: number): number {
  const step = bound(schema.multipleOf) ?? (schema.type === 'integer' ? 1 : 0)
  const low = bound(schema.minimum) ?? (bound(schema.exclusiveMinimum) ?? Number.NEGATIVE_INFINITY) + (step || 0.5)
  const high = bound(schema.maximum) ?? (bound(schema.exclusiveMaximum) ?? Number.POSITIVE_INFINITY) - (step || 0.5)
  const value = Math.min(Math.max(wanted, low), high)
  if (step === 0) return value
  const up = Math.ceil(value / step) * step
  return up <= high ? up : Math.floor(value / step) * step
}

const formats: Readonly<Record<string, string>> = {
  date: '1970-01-01',
  'date-time': '1970-01-01T00:00:00Z',
  time: '00:00:00Z',
  email: 'someone@example.com',
  uri: 'https://example.com/',
  url: 'https://example.com/',
  uuid: '00000000-0000-4000-8000-000000000000',
}

function text(schema: SampledSchema, source: string): string {
  const format = typeof schema.format === 'string' ? formats[schema.format] : undefined
  if (format !== undefined) return format
  const padded = (source.trim() || 'offline').padEnd(bound(schema.minLength) ?? 0, '.')
  return padded.slice(0, bound(schema.maxLength) ?? 500)
}

const bound = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)
