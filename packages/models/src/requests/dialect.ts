// JSON Schema of tools in the form that every provider accepts. The engine validates arguments against the tool's own
// schema, so a lost constraint only makes the model less precise.

import type { ToolSpec } from '@oxbow/core'
import { isObject } from '@oxbow/core/internal'

type Schema = Readonly<Record<string, unknown>>

export type Translated = { readonly schema: Schema } | { readonly problem: string }

/**
 * Providers demand one object at the root (no union, no reference), `properties`, `items`, no boolean schemas, and
 * definitions under `$defs`. A union at the root becomes one object with the properties of all its cases.
 *
 * @returns the schema, or why it cannot be translated: the root is not an object, or it refers to another document
 * @example translate({ anyOf: [{ type: 'object', properties: { a: {} } }] }) // { schema: { type: 'object', … } }
 */
export function translate(schema: unknown): Translated {
  try {
    const definitions = isObject(schema) ? { ...asObject(schema.definitions), ...asObject(schema.$defs) } : {}
    const root = rootOf(schema, definitions, 0)
    const defs = Object.fromEntries(Object.entries(definitions).map(([name, it]) => [name, inner(it)]))
    return { schema: { ...root, ...(Object.keys(defs).length > 0 && { $defs: defs }) } }
  } catch (error) {
    if (error instanceof Untranslatable) return { problem: error.message }
    throw error
  }
}

class Untranslatable extends Error {}

const asObject = (value: unknown): Schema => (isObject(value) ? value : {})
const MAX_DEPTH = 16

/** One object, whatever the root consists of. */
function rootOf(schema: unknown, definitions: Schema, depth: number): Record<string, unknown> {
  if (schema === true || schema === undefined) return { type: 'object', properties: {} }
  if (!isObject(schema) || depth > MAX_DEPTH) throw new Untranslatable('its schema is not an object')
  const { $schema, $id, $defs, definitions: _, $ref, anyOf, oneOf, allOf, not, enum: values, ...rest } = schema
  const types = Array.isArray(rest.type) ? rest.type : [rest.type ?? 'object']
  if (!types.includes('object'))
    throw new Untranslatable(`its schema has the type ${JSON.stringify(rest.type)}, not "object"`)
  const own = asObject(inner({ ...rest, type: 'object' }))
  const parts: { readonly schema: Schema; readonly always: boolean }[] = [{ schema: own, always: true }]
  if (typeof $ref === 'string')
    parts.push({ schema: rootOf(targetOf($ref, definitions), definitions, depth + 1), always: true })
  if (Array.isArray(allOf)) {
    for (const it of allOf) parts.push({ schema: rootOf(it, definitions, depth + 1), always: true })
  }
  const cases = [anyOf, oneOf].filter(Array.isArray).flat()
  const read = cases.flatMap((it) => caseOf(it, definitions, depth))
  if (cases.length > 0 && read.length === 0) throw new Untranslatable('no case of its union is an object')
  for (const it of read) parts.push({ schema: it, always: false })
  return merged(own, parts, read)
}

function caseOf(schema: unknown, definitions: Schema, depth: number): Schema[] {
  try {
    return [rootOf(schema, definitions, depth + 1)]
  } catch (error) {
    if (error instanceof Untranslatable) return []
    throw error
  }
}

function merged(
  own: Schema,
  parts: readonly { readonly schema: Schema; readonly always: boolean }[],
  cases: readonly Schema[],
): Record<string, unknown> {
  const properties: Record<string, unknown> = {}
  const required = new Set<unknown>()
  for (const { schema, always } of parts) {
    for (const [name, it] of Object.entries(asObject(schema.properties))) {
      const known = properties[name]
      const isNew = known === undefined || JSON.stringify(known) === JSON.stringify(it)
      properties[name] = isNew ? it : { anyOf: [...listOf(asObject(known).anyOf ?? [known]), it] }
    }
    if (always) for (const name of listOf(schema.required)) required.add(name)
  }
  // Properties that every case requires are always required.
  for (const name of listOf(cases[0]?.required)) {
    if (cases.every((it) => listOf(it.required).includes(name))) required.add(name)
  }
  const told = cases.map((it) => listOf(it.required)).filter((it) => it.length > 0)
  const hint =
    told.length > 1 ? `Give one of these sets of properties: ${told.map((it) => it.join(', ')).join('; ')}.` : ''
  const description = [own.description, hint].filter(Boolean).join(' ')
  const open = parts.length > 1 ? { additionalProperties: undefined } : {}
  return {
    ...own,
    ...open,
    type: 'object',
    properties,
    required: required.size > 0 ? [...required] : undefined,
    ...(description !== '' && { description }),
  }
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

function targetOf(reference: string, definitions: Schema): unknown {
  const name = /^#\/(?:\$defs|definitions)\/([^/]+)$/.exec(reference)?.[1]
  if (name === undefined || !Object.hasOwn(definitions, name)) throw new Untranslatable(`it refers to ${reference}`)
  return definitions[name]
}

const SCHEMAS = new Set(['not', 'if', 'then', 'else', 'contains', 'propertyNames'])
const LISTS = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems'])
const MAPS = new Set(['properties', 'patternProperties', 'dependentSchemas'])

/** A schema below the root, in terms of draft 2020-12. */
function inner(schema: unknown): Schema {
  if (!isObject(schema)) return {}
  const result: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(schema)) {
    if (key === '$schema' || key === '$id' || key === '$defs' || key === 'definitions' || key === 'nullable') continue
    if (key === '$ref') result.$ref = localReference(value)
    else if (SCHEMAS.has(key)) result[key] = inner(value)
    else if (LISTS.has(key)) result[key] = listOf(value).map(inner)
    else if (MAPS.has(key)) result[key] = mapped(value)
    else if (key === 'items') result.items = Array.isArray(value) ? { anyOf: value.map(inner) } : inner(value)
    else if (key === 'additionalProperties') result[key] = typeof value === 'boolean' ? value : inner(value)
    else if (key === 'exclusiveMinimum' || key === 'exclusiveMaximum') limit(result, key, value, schema)
    else result[key] = value
  }
  const types = listOf(Array.isArray(result.type) ? result.type : [result.type])
  if (types.includes('object') && result.properties === undefined) result.properties = {}
  if (types.includes('array') && result.items === undefined) result.items = {}
  if (schema.nullable === true && typeof result.type === 'string') result.type = [result.type, 'null']
  return result
}

const mapped = (value: unknown): Schema =>
  Object.fromEntries(Object.entries(asObject(value)).map(([name, it]) => [name, inner(it)]))

/** Draft 4 has a boolean next to the limit. */
function limit(result: Record<string, unknown>, key: string, value: unknown, schema: Schema): void {
  if (typeof value === 'number') result[key] = value
  else if (value === true) result[key] = schema[key === 'exclusiveMinimum' ? 'minimum' : 'maximum']
}

function localReference(reference: unknown): string {
  const text = String(reference)
  if (!text.startsWith('#')) throw new Untranslatable(`it refers to another document, ${text}`)
  return text.replace(/^#\/definitions\//, '#/$defs/')
}

const translations = new WeakMap<ToolSpec, Translated>()

/** The tools that can be offered, with schemas that every provider accepts; each of the others is reported once. */
export function offerable(tools: readonly ToolSpec[], model: string): ToolSpec[] {
  return tools.flatMap((tool) => {
    let translated = translations.get(tool)
    if (translated === undefined) {
      translated = translate(tool.input)
      translations.set(tool, translated)
      if ('problem' in translated) {
        process.emitWarning(
          `Tool ${tool.name} is not offered to ${model}: ${translated.problem}. Change its input schema.`,
          {
            type: 'OxbowWarning',
            code: 'OXBOW_TOOL_SCHEMA',
          },
        )
      }
    }
    return 'schema' in translated ? [tool] : []
  })
}

/** The schema of a tool that `offerable` let through. */
export function inputSchema(tool: ToolSpec): Schema {
  const translated = translations.get(tool) ?? translate(tool.input)
  return 'schema' in translated ? translated.schema : { type: 'object', properties: {} }
}
