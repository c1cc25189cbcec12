// JSON Schema and Standard Schema. ajv is loaded when the first schema is compiled, not when core is imported. The
// published package contains it, so its types must not appear in ours.
import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec'
import { OxbowError } from '../errors.ts'
import type { FieldCheck } from './fields.ts'

export type JsonSchema = Readonly<Record<string, unknown>>

/** A schema library's object (zod, valibot, arktype …) that can also export its JSON Schema, or JSON Schema itself. */
export type Schema<Output = unknown> = StandardSchemaV1<unknown, Output> | JsonSchema

/** What a caller writes: before the defaults and conversions of a schema. */
export type SchemaInput<S> =
  S extends StandardSchemaV1<infer Input, unknown>
    ? Input extends object
      ? Input
      : Record<string, unknown>
    : Record<string, unknown>

export type SchemaOutput<S> = S extends StandardSchemaV1<unknown, infer Output> ? Output : Record<string, unknown>

export const isStandardSchema = (schema: Schema): schema is StandardSchemaV1 => '~standard' in schema

/** @throws OxbowError `schema_unsupported` when a schema library's object cannot export its JSON Schema */
export function toJsonSchema(schema: Schema, where: string): JsonSchema {
  if (!isStandardSchema(schema)) return schema
  const standard = schema['~standard'] as StandardSchemaV1.Props & Partial<StandardJSONSchemaV1.Props>
  if (standard.jsonSchema === undefined)
    throw new OxbowError(
      'schema_unsupported',
      `${where}: this ${standard.vendor} schema cannot export its JSON Schema. ` +
        `Wrap it with the library's Standard JSON Schema adapter (valibot: toStandardJsonSchema from @valibot/to-json-schema), or give JSON Schema.`,
    )
  const { $schema: _, ...json } = standard.jsonSchema.input({ target: 'draft-2020-12' })
  return json
}

/** The keywords of which a schema has at least one. */
const KEYWORDS = new Set(
  (
    '$schema $id $ref $dynamicRef $defs definitions $comment type enum const allOf anyOf oneOf not if then else ' +
    'properties patternProperties additionalProperties propertyNames required dependentRequired dependentSchemas ' +
    'minProperties maxProperties unevaluatedProperties items prefixItems contains minItems maxItems uniqueItems ' +
    'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern format title ' +
    'description default examples'
  ).split(' '),
)

/** Some libraries' schemas are functions. */
const isSchemaLike = (it: unknown): it is Schema =>
  (typeof it === 'object' && it !== null && !Array.isArray(it)) || (typeof it === 'function' && '~standard' in it)

/** Not a schema, or an object with the fields of the described object in place of keywords. */
export const schema: FieldCheck = (value, path) => {
  if (!isSchemaLike(value)) return `${path} must be a schema`
  if (isStandardSchema(value)) return undefined
  const entries = Object.entries(value)
  const part = entries.find(([, it]) => typeof it === 'object' && it !== null && '~standard' in it)
  if (part !== undefined)
    return `${path} must be one schema, for example z.object({ ${part[0]}: … }); got an object whose "${part[0]}" is a schema`
  const [first] = entries
  return first === undefined || entries.some(([name]) => KEYWORDS.has(name))
    ? undefined
    : `${path} must be a JSON Schema, for example { type: 'object', properties: { ${first[0]}: … } }; got no keyword of JSON Schema`
}

/** One mismatch between a value and a schema, as ajv reports it. */
export interface SchemaError {
  readonly keyword: string
  /** JSON Pointer to the value. */
  readonly instancePath: string
  readonly params: Readonly<Record<string, unknown>>
  readonly message?: string
}

/** Returns whether the value matches; `errors` belongs to the last call. */
export interface Validator {
  (value: unknown): boolean
  readonly errors?: readonly SchemaError[] | null
}

type Compile = (schema: JsonSchema) => Validator

let compiler: Promise<Compile> | undefined
const compiled = new WeakMap<JsonSchema, Validator>()
/** By their text, because the schema of a structured answer is another object in every turn. Oldest first. */
const byText = new Map<string, Validator>()
const MAX_KEPT = 200

/** The shared ajv (2020-12), with validators cached per schema object. */
export async function validatorFor(schema: JsonSchema, where: string): Promise<Validator> {
  const known = compiled.get(schema)
  if (known !== undefined) return known
  compiler ??= loadAjv()
  const compile = await compiler
  try {
    const text = JSON.stringify(schema)
    const validate = byText.get(text) ?? compile(schema)
    byText.delete(text)
    byText.set(text, validate)
    if (byText.size > MAX_KEPT) byText.delete(byText.keys().next().value!)
    compiled.set(schema, validate)
    return validate
  } catch (cause) {
    throw new OxbowError('schema_invalid', `${where}: not a valid JSON Schema: ${(cause as Error).message}`, { cause })
  }
}

async function loadAjv(): Promise<Compile> {
  const [{ Ajv2020 }, formats] = await Promise.all([import('ajv/dist/2020.js'), import('ajv-formats')])
  // Third-party schemas may name unknown formats: those are not checked, and not reported.
  const options = { strict: false, allErrors: true, validateSchema: true, logger: false } as const
  const ajv = new Ajv2020(options)
  // ajv-formats is CommonJS: its function is the default export of the default export.
  const addFormats = formats.default as unknown as (target: unknown) => void
  addFormats(ajv)
  // `$schema` is dropped because authors write other drafts' addresses above schemas that 2020-12 reads as well.
  return ({ $schema: _, ...schema }) => {
    try {
      return ajv.compile(schema)
    } finally {
      // ajv would hold on to every schema that it has ever seen.
      ajv.removeSchema(schema)
    }
  }
}

/** The errors of a validator, as one line that a model can act upon. */
export function describeErrors(validate: Validator): string {
  const lines = (validate.errors ?? []).map(({ instancePath, message, params }) => {
    const detail = 'allowedValues' in params ? ` (${JSON.stringify(params.allowedValues)})` : ''
    const extra = 'additionalProperty' in params ? ` (${JSON.stringify(params.additionalProperty)})` : ''
    return `${instancePath === '' ? 'the object' : instancePath.slice(1).replaceAll('/', '.')} ${message ?? 'is wrong'}${detail}${extra}`
  })
  return [...new Set(lines)].slice(0, 8).join('; ')
}
