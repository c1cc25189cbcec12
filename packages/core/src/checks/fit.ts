// JSON that others wrote, made to fit a schema where nothing can be lost by it.
import { type Held, inexactNumber, parseExact, writtenAs } from './exact-json.ts'
import { describeErrors, type JsonSchema, type SchemaError, validatorFor } from './json-schema.ts'

/**
 * Validates the value against the schema, after safe conversions in place: "12" → 12, "true" → true, 12 → "12" (as it was
 * written), '{"a":1}' → {"a":1}, and a null for a property that may be left out. A number that a double cannot hold
 * is a problem unless the schema takes it as text.
 *
 * @param holder What `parseHeld` returned; it is changed.
 * @returns the value, or what is wrong with it and where.
 */
export async function fitToSchema(
  holder: Held,
  schema: JsonSchema,
  where: string,
): Promise<{ readonly value: unknown } | { readonly problem: string }> {
  const validate = await validatorFor(schema, where)
  if (!validate(holder[''])) {
    const before = describeErrors(validate)
    for (const error of validate.errors ?? []) coerce(holder as object as Record<string, unknown>, error)
    if (!validate(holder[''])) return { problem: before }
  }
  const lost = inexactNumber(holder)
  if (lost !== undefined)
    return {
      problem: `${lost.path === '' ? '' : `${lost.path}: `}the number ${lost.source} cannot be held exactly. Write it as a string`,
    }
  return { value: holder[''] }
}

/** Changes one value in place where the validator found another type. */
function coerce(root: Record<string, unknown>, { keyword, instancePath, params }: SchemaError): void {
  if (keyword !== 'type') return
  const path = ['', ...instancePath.split('/').slice(1)].map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  const name = path.pop()!
  if (name === '__proto__') return
  let parent: unknown = root
  for (const part of path) parent = (parent as Record<string, unknown> | undefined)?.[part]
  if (typeof parent !== 'object' || parent === null || !Object.hasOwn(parent, name)) return
  const holder = parent as Record<string, unknown>
  const value = holder[name]
  if (value === null && parent !== root && !Array.isArray(parent)) {
    // Validation decides afterwards whether the property was required.
    delete holder[name]
    return
  }
  const types: unknown[] = Array.isArray(params.type) ? params.type : [params.type]
  for (const type of types) {
    const converted = convert(holder, name, type)
    if (converted !== undefined) {
      holder[name] = converted
      return
    }
  }
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

function convert(holder: Record<string, unknown>, name: string, type: unknown): unknown {
  const value = holder[name]
  if (type === 'string') {
    if (typeof value === 'number') return writtenAs(holder, name)
    return typeof value === 'boolean' ? String(value) : undefined
  }
  if (typeof value !== 'string') return undefined
  const text = value.trim()
  switch (type) {
    case 'integer':
    case 'number': {
      if (!NUMBER.test(text)) return undefined
      const number = Number(text)
      // 9007199254740993 would silently become another number.
      const exact = Number.isInteger(number) ? Number.isSafeInteger(number) : Number.isFinite(number)
      return exact ? number : undefined
    }
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : undefined
    case 'object':
    case 'array':
      try {
        const parsed = parseExact(text)
        const isArray = Array.isArray(parsed)
        return typeof parsed === 'object' && parsed !== null && isArray === (type === 'array') ? parsed : undefined
      } catch {
        return undefined
      }
    default:
      return undefined
  }
}
