// Servers' schemas of any draft as schemas of 2020-12 that this process can validate with.

import type { JsonSchema } from '@oxbow/core'
import { isObject } from '@oxbow/core/internal'
import { References } from './references.ts'
import { boundExpansion } from './schema-cost.ts'

const MAX_DEPTH = 64
const MAX_LENGTH = 200_000

type Json = Record<string, unknown>

/** Keywords whose value is a schema, a list of schemas, or named schemas. */
const ONE = new Set(
  'not if then else contains propertyNames additionalProperties unevaluatedItems unevaluatedProperties items contentSchema'.split(
    ' ',
  ),
)
const LISTS = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems'])
const NAMED = new Set(['properties', '$defs', 'definitions', 'dependentSchemas'])

/**
 * The same schema in 2020-12: lists of `items`, `dependencies`, `$recursiveRef`, the booleans of draft-04. References
 * to `$id` and `$anchor` become pointers. Regular expressions and `uniqueItems` are removed, because they can be
 * crafted to keep a process busy for hours; the server validates them itself.
 *
 * @example modernSchema({ type: 'object', properties: { age: { minimum: 0, exclusiveMinimum: true } } })
 * @throws Error when it is not the schema of an object, or is too deep, too long, or too much work to validate with
 */
export function modernSchema(schema: unknown): JsonSchema {
  if (!isObject(schema)) throw new Error('the input schema is not an object')
  if (JSON.stringify(schema).length > MAX_LENGTH) throw new Error(`the schema is longer than ${MAX_LENGTH} characters`)
  const schemas = new Set<object>()
  const references = new References()
  const modern = convert(schema, { path: '', base: '', depth: 0 }, schemas, references) as Json
  references.resolve()
  boundExpansion(modern, schemas)
  return schema.$schema === undefined ? modern : { ...modern, $schema: 'https://json-schema.org/draft/2020-12/schema' }
}

interface Place {
  /** From the root of the new schema, as a JSON pointer. */
  readonly path: string
  /** The `$id` that is the base of its references. */
  readonly base: string
  readonly depth: number
}

/** @param schemas receives every schema in it: a reference may only lead to these */
function convert(schema: unknown, place: Place, schemas: Set<object>, references: References): unknown {
  if (place.depth > MAX_DEPTH) throw new Error(`the schema is nested deeper than ${MAX_DEPTH}`)
  if (!isObject(schema)) return schema
  const result: Json = {}
  const { path, depth } = place
  const base = references.add(schema, result, place)
  const next = (value: unknown, ...keys: (string | number)[]): unknown => {
    const steps = keys.map((it) => `/${String(it).replaceAll('~', '~0').replaceAll('/', '~1')}`)
    return convert(value, { path: path + steps.join(''), base, depth: depth + 1 }, schemas, references)
  }
  const list = (values: readonly unknown[], key: string): unknown[] => values.map((it, at) => next(it, key, at))
  const named = (value: unknown, at: string): unknown =>
    isObject(value) ? Object.fromEntries(Object.entries(value).map(([key, it]) => [key, next(it, at, key)])) : value
  for (const [key, value] of Object.entries(schema)) {
    if (NAMED.has(key)) result[key] = named(value, key)
    else if (LISTS.has(key) && Array.isArray(value)) result[key] = list(value, key)
    else if (key === 'items' && Array.isArray(value)) {
      result.prefixItems = list(value, 'prefixItems')
      if (schema.additionalItems !== undefined) result.items = next(schema.additionalItems, 'items')
    } else if (ONE.has(key)) result[key] = next(value, key)
    else if (key === 'dependencies' && isObject(value)) {
      const lists = Object.entries(value).filter(([, it]) => Array.isArray(it))
      const dependent = Object.entries(value).filter(([, it]) => !Array.isArray(it))
      if (lists.length > 0) result.dependentRequired = Object.fromEntries(lists)
      if (dependent.length > 0) result.dependentSchemas = named(Object.fromEntries(dependent), 'dependentSchemas')
    } else if (key === '$recursiveRef') result.$ref = value
    else if (key === 'exclusiveMinimum' && typeof value === 'boolean') {
      if (value) result.exclusiveMinimum = schema.minimum
    } else if (key === 'exclusiveMaximum' && typeof value === 'boolean') {
      if (value) result.exclusiveMaximum = schema.maximum
    } else if (!LEFT_OUT.has(key)) result[key] = value
  }
  // Properties that a removed pattern would have allowed must not be refused.
  if (isObject(schema.patternProperties)) {
    delete result.additionalProperties
    delete result.unevaluatedProperties
  }
  schemas.add(result)
  return result
}

const LEFT_OUT = new Set(
  // References are pointers into this schema. `__proto__` would be more than a field.
  'pattern patternProperties additionalItems uniqueItems $recursiveAnchor $id id $anchor $dynamicAnchor __proto__'.split(
    ' ',
  ),
)
