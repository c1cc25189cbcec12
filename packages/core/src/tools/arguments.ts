// From the raw text that a model wrote to arguments that may run: strict parse, safe coercion, validation.
import { isDeepStrictEqual } from 'node:util'
import { parseExact } from '../checks/exact-json.ts'
import { isObject } from '../checks/fields.ts'
import { fitToSchema } from '../checks/fit.ts'
import { isStandardSchema, type JsonSchema, type Schema } from '../checks/json-schema.ts'

export type Arguments = Record<string, unknown>

export type ParsedArguments =
  | {
      readonly ok: true
      /** Coerced and validated: the same again when they are parsed again. */
      readonly given: Arguments
      /** The arguments after coercion, as JSON. They are judged, shown and stored in this form. */
      readonly arguments: Arguments
      /** The same for the tool, with a schema library's own values (a `Date`) where `arguments` has their JSON. */
      readonly input: unknown
    }
  | {
      readonly ok: false
      /** The problem, and where it is. */
      readonly problem: string
      /** The same for the model, with the schema. */
      readonly message: string
    }

type ParsedTool = { readonly name: string; readonly input: Schema; readonly jsonSchema: JsonSchema }

const TEMPLATE_MARKER = /^<\|[a-z_]{1,32}\|>$/

/** Some open models leave their template's end markers behind a complete value. */
function withoutMarkers(raw: string): string {
  let text = raw.trim()
  while (text.endsWith('|>')) {
    const start = text.lastIndexOf('<|')
    if (start === -1 || !TEMPLATE_MARKER.test(text.slice(start))) break
    text = text.slice(0, start).trimEnd()
  }
  return text
}

/**
 * Broken JSON is never repaired: what cannot be read as one object is refused, with the schema for the model to read.
 */
export async function parseArguments(raw: string, tool: ParsedTool): Promise<ParsedArguments> {
  const read = readObject(raw, tool.jsonSchema)
  if (typeof read === 'string') return refuse(read, tool.jsonSchema)
  const fitted = await fitToSchema({ '': read }, tool.jsonSchema, `tool ${tool.name}, input`)
  if ('problem' in fitted) return refuse(fitted.problem, tool.jsonSchema)
  const value = fitted.value as Arguments
  const given = structuredClone(value)
  // A copy: a tool that changes its input must not change what is stored.
  if (!isStandardSchema(tool.input)) return { ok: true, given, arguments: value, input: structuredClone(value) }

  const outcome = await tool.input['~standard'].validate(value)
  if (outcome.issues === undefined) return withOutput(given, outcome.value, tool)
  const issues = outcome.issues.map(({ path, message }) => {
    const where = (path ?? []).map((part) => (typeof part === 'object' ? part.key : part)).join('.')
    return where === '' ? message : `${where}: ${message}`
  })
  return refuse(issues.slice(0, 8).join('; '), tool.jsonSchema)
}

/** Defaults and transforms change what the model wrote. What is judged has to be what runs. */
function withOutput(given: Arguments, input: unknown, tool: ParsedTool): ParsedArguments {
  try {
    const json = jsonOf(input)
    if (isObject(json)) return { ok: true, given, arguments: json, input }
    return refuse(`the schema of ${tool.name} makes something else of them than an object`, tool.jsonSchema)
  } catch (error) {
    const problem = `the schema of ${tool.name} makes something of them that cannot be judged (${(error as Error).message}); a transform has to give JSON, or values with toJSON()`
    return refuse(problem, tool.jsonSchema)
  }
}

/** @throws for what JSON would leave out or change in silence, such as a Map */
function jsonOf(value: unknown): unknown {
  if (value === null || typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value)) return value
  if (Array.isArray(value)) return value.map(jsonOf)
  if (typeof value === 'object') {
    if ('toJSON' in value && typeof value.toJSON === 'function') return jsonOf(value.toJSON())
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype === Object.prototype || prototype === null) {
      const fields = Object.entries(value).filter(([, it]) => it !== undefined)
      return Object.fromEntries(fields.map(([name, it]) => [name, jsonOf(it)]))
    }
  }
  throw new TypeError(`${Object.prototype.toString.call(value).slice(8, -1)} is not JSON`)
}

/**
 * Arguments that were judged earlier, for the tool: they are what runs, also if the schema makes something else of the
 * same text by now (a default that is the time of day). `raw` is what the model or a person wrote.
 */
export async function parseAgain(raw: string, judged: Arguments, tool: ParsedTool): Promise<ParsedArguments> {
  const first = await parseArguments(raw, tool)
  if (!first.ok) return first
  const parsed = isDeepStrictEqual(first.arguments, judged) ? first : await parseArguments(JSON.stringify(judged), tool)
  if (parsed.ok && isDeepStrictEqual(parsed.arguments, judged))
    return { ...first, arguments: judged, input: parsed.input }
  if (isDeepStrictEqual(first.input, first.arguments))
    return { ...first, arguments: judged, input: structuredClone(judged) }
  return refuse(`the schema of ${tool.name} does not make the same of them again`, tool.jsonSchema)
}

/** The object, or what is wrong with the text. */
function readObject(raw: string, schema: JsonSchema): Arguments | string {
  const text = withoutMarkers(raw)
  if (text === '') {
    const required = Array.isArray(schema.required) ? schema.required : []
    return required.length === 0 ? {} : 'the arguments are empty'
  }
  let value: unknown
  try {
    value = parseExact(text)
  } catch (error) {
    return `the arguments are not valid JSON (${(error as Error).message})`
  }
  if (isObject(value)) return value
  return `the arguments must be one JSON object, not ${value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`}`
}

const refuse = (problem: string, schema: JsonSchema): ParsedArguments => ({
  ok: false,
  problem,
  message: `Not run: ${problem}. Call again with arguments that fit this JSON Schema: ${JSON.stringify(schema)}`,
})
