// Options are checked where they are passed: one that is misspelt would be ignored.
import { OxbowError } from '@oxbow/core'
import { anything, checkFields, type FieldCheck, type Fields, fieldsOf, isObject } from '@oxbow/core/internal'

/**
 * @param of the function that has the options, for example `openaiChat()`
 * @throws OxbowError `model_config` for what is not an object, an unknown option, or a missing one
 */
export function checkModelOptions<T extends object>(
  of: string,
  options: T,
  fields: Fields<T>,
  required: readonly (keyof T & string)[] = [],
): void {
  const invalid = (what: string) => new OxbowError('model_config', `${of}: ${what}`)
  checkFields(options, fields, invalid)
  const missing = required.find((name) => options[name] === undefined)
  if (missing !== undefined) throw invalid(`${missing} is required.`)
}

/** @throws OxbowError `model_config` */
export function checkModel(of: string, model: unknown): void {
  if (isObject(model) && typeof model.id === 'string' && typeof model.generate === 'function') return
  throw new OxbowError(
    'model_config',
    `${of}: needs a Model, for example openModel("openai:gpt-5") or openaiChat({ … }).`,
  )
}

/** An object with any names. */
export const recordOf =
  (check: FieldCheck): FieldCheck =>
  (value, path) => {
    if (!isObject(value)) return `${path} must be an object; got ${JSON.stringify(value)}`
    for (const [name, it] of Object.entries(value)) {
      const problem = check(it, `${path}.${name}`)
      if (problem !== undefined) return problem
    }
    return undefined
  }

const anyFields = (...names: readonly string[]): FieldCheck =>
  fieldsOf(Object.fromEntries(names.map((it) => [it, anything])))

export const timeoutFields = anyFields('firstByteMs', 'idleMs', 'totalMs')
export const limitFields = anyFields('answerBytes', 'calls')
export const retryFields = anyFields('attempts', 'baseMs', 'maxMs')
export const breakerFields = anyFields('requests', 'failureRate', 'minimum', 'openMs')

/** Not shown, whatever it is. */
export const key: FieldCheck = (value, path) => (typeof value === 'string' ? undefined : `${path} must be a text.`)

/** A `Headers` object has no fields of its own, so it would be ignored. What was given may hold a key: it is not shown. */
export const headerFields: FieldCheck = (value, path) =>
  isObject(value) && !(value instanceof Headers)
    ? undefined
    : `${path} must be an object of texts, for example { "x-team": "search" }.`
