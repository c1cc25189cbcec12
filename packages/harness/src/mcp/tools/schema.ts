// Schemas of servers, of whatever draft, as schemas of 2020-12 that this process may check arguments with.
import type { JsonSchema } from '@oxbow/core'
import { boundExpansion } from './schema-cost.ts'

const MAX_DEPTH = 64
const MAX_LENGTH = 200_000

type Json = Record<string, unknown>

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Keywords whose value is a schema, a list of schemas, or named schemas. */
const ONE = new Set(
  'not if then else contains propertyNames additionalProperties unevaluatedItems unevaluatedProperties items contentSchema'.split(
    ' ',
  ),
)
const LISTS = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems'])
const NAMED = new Set(['properties', '$defs', 'definitions', 'dependentSchemas'])

/**
 * The same schema in 2020-12: lists of `items`, `dependencies`, `$recursiveRef`, the booleans of draft-04. Regular
 * expressions and `uniqueItems` are left out, because they can be made to keep a process busy for hours; the server checks
 * them itself.
 *
 * @throws Error when it is no schema of an object, too deep, too long, or too much work to check arguments with
 */
export function modernSchema(schema: unknown): JsonSchema {
  if (!isObject(schema)) throw new Error('the input schema is no object')
  if (JSON.stringify(schema).length > MAX_LENGTH) throw new Error(`the schema is longer than ${MAX_LENGTH} characters`)
  const schemas = new Set<object>()
  const modern = convert(schema, 0, schemas) as Json
  boundExpansion(modern, schemas)
  return schema.$schema === undefined ? modern : { ...modern, $schema: 'https://json-schema.org/draft/2020-12/schema' }
}

/** @param schemas gets whatever stands where a schema stands: a reference may lead to nothing else. */
function convert(schema: unknown, depth: number, schemas: Set<object>): unknown {
  if (depth > MAX_DEPTH) throw new Error(`the schema is nested deeper than ${MAX_DEPTH}`)
  if (!isObject(schema)) return schema
  const result: Json = {}
  const next = (value: unknown): unknown => convert(value, depth + 1, schemas)
  const named = (value: unknown): unknown =>
    isObject(value) ? Object.fromEntries(Object.entries(value).map(([key, it]) => [key, next(it)])) : value
  for (const [key, value] of Object.entries(schema)) {
    if (NAMED.has(key)) result[key] = named(value)
    else if (LISTS.has(key) && Array.isArray(value)) result[key] = value.map(next)
    else if (key === 'items' && Array.isArray(value)) {
      result.prefixItems = value.map(next)
      if (schema.additionalItems !== undefined) result.items = next(schema.additionalItems)
    } else if (ONE.has(key)) result[key] = next(value)
    else if (key === 'dependencies' && isObject(value)) {
      const lists = Object.entries(value).filter(([, it]) => Array.isArray(it))
      const schemas = Object.entries(value).filter(([, it]) => !Array.isArray(it))
      if (lists.length > 0) result.dependentRequired = Object.fromEntries(lists)
      if (schemas.length > 0) result.dependentSchemas = named(Object.fromEntries(schemas))
    } else if (key === '$recursiveRef') result.$ref = value
    else if (key === 'exclusiveMinimum' && typeof value === 'boolean') {
      if (value) result.exclusiveMinimum = schema.minimum
    } else if (key === 'exclusiveMaximum' && typeof value === 'boolean') {
      if (value) result.exclusiveMaximum = schema.maximum
    } else if (!LEFT_OUT.has(key)) result[key] = value
  }
  // What a pattern would have allowed must not be refused because the pattern is gone.
  if (isObject(schema.patternProperties)) {
    delete result.additionalProperties
    delete result.unevaluatedProperties
  }
  schemas.add(result)
  return result
}

const LEFT_OUT = new Set(
  // Without other addresses a reference is a place in this schema. `__proto__` would be more than a field.
  'pattern patternProperties additionalItems uniqueItems $recursiveAnchor $id id $anchor $dynamicAnchor __proto__'.split(
    ' ',
  ),
)
