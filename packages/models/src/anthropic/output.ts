// Answers of a given schema: the subset of JSON Schema that Anthropic's structured output supports, and the tool that
// replaces it for other schemas.
import type { ModelRequest } from '@oxbow/core'
import { wireToolName } from '../requests/write.ts'

type Schema = Readonly<Record<string, unknown>>

/**
 * Keywords that stay; the others move to the description, and the engine validates the answer anyway.
 */
const kept = new Set(['type', 'enum', 'const', 'title', 'description', 'required', 'default', '$ref'])
const formats = new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'])

/**
 * The schema in the API's subset, with closed objects and with limits moved into descriptions. Undefined where the
 * subset cannot express it: open objects, property name patterns, recursion.
 */
export function nativeSchema(schema: Schema): Schema | undefined {
  const definitions = (schema.$defs ?? {}) as Record<string, Schema>
  try {
    return convert(schema, definitions, [])
  } catch (error) {
    if (error === inexpressible) return undefined
    throw error
  }
}

const inexpressible = new Error('This schema is beyond the subset.')

function convert(schema: unknown, definitions: Record<string, Schema>, within: readonly string[]): Schema {
  if (typeof schema !== 'object' || schema === null) throw inexpressible
  const result: Record<string, unknown> = {}
  const told: Record<string, unknown> = {}
  const inner = (it: unknown) => convert(it, definitions, within)
  for (const [key, value] of Object.entries(schema)) {
    if (key === '$ref') checkReference(value, definitions, within)
    if (key === '$schema' || key === 'additionalProperties') continue
    if (kept.has(key)) result[key] = value
    else if (key === 'properties' || key === '$defs') {
      result[key] = Object.fromEntries(Object.entries(value as object).map(([name, it]) => [name, inner(it)]))
    } else if (key === 'items') result.items = inner(value)
    else if (key === 'anyOf' || key === 'oneOf') result.anyOf = (value as unknown[]).map(inner)
    else if (key === 'allOf') result.allOf = (value as unknown[]).map(inner)
    else if (key === 'format' && formats.has(String(value))) result.format = value
    else if (key === 'minItems' && (value === 0 || value === 1)) result.minItems = value
    else if (key === 'patternProperties' || key === 'propertyNames' || key === 'prefixItems') throw inexpressible
    else told[key] = value
  }
  if (result.type === 'object' || result.properties !== undefined) closeObject(schema as Schema, result)
  if (Object.keys(told).length > 0) {
    result.description = [result.description, JSON.stringify(told)].filter(Boolean).join('\n\n')
  }
  return result
}

/** An object that lists no properties, or requires further ones, would always be empty once closed. */
function closeObject(schema: Schema, result: Record<string, unknown>): void {
  const further = schema.additionalProperties
  if (typeof further === 'object' || (further !== false && result.properties === undefined)) throw inexpressible
  result.properties ??= {}
  result.additionalProperties = false
}

/** Only the schema's own definitions that do not contain themselves. */
function checkReference(reference: unknown, definitions: Record<string, Schema>, within: readonly string[]): void {
  const name = typeof reference === 'string' ? /^#\/\$defs\/([^/]+)$/.exec(reference)?.[1] : undefined
  if (name === undefined || !Object.hasOwn(definitions, name) || within.includes(name)) throw inexpressible
  convert(definitions[name], definitions, [...within, name])
}

/** The tool whose arguments are the answer. Its name differs from those of the request. */
export function answerTool(output: NonNullable<ModelRequest['output']>, tools: ModelRequest['tools']) {
  let name = wireToolName(output.name)
  while (tools.some((tool) => wireToolName(tool.name) === name)) name = wireToolName(`answer_${name}`)
  return {
    name,
    description: 'Give your final answer by calling this tool. Its arguments are the answer.',
    input: output.schema,
  }
}
