// Checks of the objects that a program passes in. A misspelt guard guards nothing, so unknown names and invalid values
// are always refused, also for callers without a compiler.
import { nearest } from './nearest.ts'

/** What is wrong with the value of the field `path`, as a sentence; undefined when nothing is. */
export type FieldCheck = (value: unknown, path: string) => string | undefined
/** All known fields. All are optional here: required fields are checked where they are used. */
export type Fields<T> = { readonly [Name in keyof Required<T>]: FieldCheck }

/** What to write instead of a field that has another name or place here, as a sentence. */
export type Hints = Readonly<Record<string, string>>

/**
 * Refuses values that are not objects, unknown fields, and invalid values.
 *
 * @param hints for unknown fields that people bring along from other libraries
 * @throws what `invalid` makes of the problem
 * @example
 * checkFields(definition, { name: text, retries: count }, (what) => new OxbowError('tool_invalid', what))
 */
export function checkFields(
  value: unknown,
  fields: Readonly<Record<string, FieldCheck>>,
  invalid: (what: string) => Error,
  hints: Hints = {},
): void {
  const problem = foreignField(value, hints) ?? fieldsOf(fields)(value, '')
  if (problem !== undefined) throw invalid(problem)
}

function foreignField(value: unknown, hints: Hints): string | undefined {
  if (!isObject(value)) return undefined
  const name = Object.keys(value).find((it) => value[it] !== undefined && Object.hasOwn(hints, it))
  return name === undefined ? undefined : `unknown field "${name}". ${hints[name]}`
}

/** @throws what `invalid` makes of the problem. `example`: what to write. */
export function checkObject(value: unknown, example: string, invalid: (what: string) => Error): void {
  if (!isObject(value)) throw invalid(`needs an object, for example ${example}; got ${shown(value)}`)
}

/** An object with these fields and no others. */
export const fieldsOf =
  (fields: Readonly<Record<string, FieldCheck>>): FieldCheck =>
  (value, path) => {
    if (!isObject(value)) return `${path || 'it'} must be an object; got ${shown(value)}`
    const prefix = path === '' ? '' : `${path}.`
    for (const [name, it] of Object.entries(value)) {
      if (it === undefined) continue
      if (!Object.hasOwn(fields, name)) return unknownField(prefix, name, Object.keys(fields))
      const problem = fields[name]!(it, prefix + name)
      if (problem !== undefined) return problem
    }
    return undefined
  }

export function unknownField(prefix: string, name: string, known: readonly string[]): string {
  const meant = nearest(name, known)
  const hint = meant === undefined ? `Allowed: ${known.join(', ')}.` : `Did you mean "${prefix}${meant}"?`
  return `unknown field "${prefix}${name}". ${hint}`
}

/** Each of a list. */
export const listOf =
  (check: FieldCheck): FieldCheck =>
  (value, path) => {
    if (!Array.isArray(value)) return `${path} must be a list; got ${shown(value)}`
    for (const [index, it] of value.entries()) {
      const problem = check(it, `${path}[${index}]`)
      if (problem !== undefined) return problem
    }
    return undefined
  }

const must =
  (fits: (value: unknown) => boolean, what: string): FieldCheck =>
  (value, path) =>
    fits(value) ? undefined : `${path} must be ${what}; got ${shown(value)}`

function shown(value: unknown): string {
  if (typeof value === 'function') return 'a function'
  if (typeof value !== 'object' && typeof value !== 'string') return String(value)
  try {
    return JSON.stringify(value).slice(0, 60)
  } catch {
    return 'an object'
  }
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const anything: FieldCheck = () => undefined
export const text = must((it) => typeof it === 'string' && it.trim() !== '', 'a text that is not empty')
export const anyText = must((it) => typeof it === 'string', 'a text')
export const flag = must((it) => typeof it === 'boolean', 'true or false')
export const callable = must((it) => typeof it === 'function', 'a function')
export const object = must(isObject, 'an object')
export const positive = must((it) => typeof it === 'number' && it > 0, 'a number above 0')
export const notNegative = must((it) => Number.isFinite(it) && (it as number) >= 0, 'a number, 0 or above')
/** Whole, or Infinity for no limit. */
export const count = must(
  (it) => (Number.isInteger(it) && (it as number) > 0) || it === Number.POSITIVE_INFINITY,
  'a whole number above 0',
)
export const countOrNone = must((it) => Number.isInteger(it) && (it as number) >= 0, 'a whole number, 0 or above')
export const permissionId = must(
  (it) => typeof it === 'string' && /^[^\s:]+(:[^\s:]+)*$/.test(it),
  'a permission id such as biz:order:query',
)
export const oneOf = (...values: readonly string[]): FieldCheck =>
  must((it) => values.includes(it as string), values.length > 1 ? `one of ${values.join(', ')}` : `"${values[0]}"`)
