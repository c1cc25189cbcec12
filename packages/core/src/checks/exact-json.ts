// JSON whose numbers keep their source text, because a double cannot hold every number that JSON can write.

/** The source text of numbers whose shortest form is another, by the object or list that holds them. */
const sources = new WeakMap<object, Map<string, string>>()

/** A text without these only has numbers that survive a round trip through a double. */
const MAY_DIFFER = /\d{16}|\d\.\d|\d[eE]|-0/

/**
 * Parses JSON like `JSON.parse`, and remembers how numbers were written.
 *
 * @throws SyntaxError
 */
export function parseExact(text: string): unknown {
  if (!MAY_DIFFER.test(text)) return JSON.parse(text)
  return JSON.parse(text, function (this: object, key: string, value: unknown, context?: { source?: string }) {
    const source = context?.source
    if (typeof value === 'number' && source !== undefined && source !== String(value)) {
      const known = sources.get(this) ?? new Map<string, string>()
      known.set(key, source)
      sources.set(this, known)
    }
    return value
  } as (this: unknown, key: string, value: unknown) => unknown)
}

/** How the number under `key` was written: `1.10`, or `2064875200729235458`, which as a number would be another one. */
export const writtenAs = (holder: object, key: string): string =>
  sources.get(holder)?.get(key) ?? String((holder as Record<string, unknown>)[key])

const WHOLE = /^-?\d+(\.0+)?$/

/**
 * The first whole number in a parsed value that a double cannot hold, as `{ path, source }`; undefined if there is
 * none.
 *
 * @example inexactInteger(parseExact('{"id":2064875200729235458}')) // { path: 'id', source: '2064875200729235458' }
 */
export function inexactInteger(value: unknown, path = ''): { path: string; source: string } | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, it] of Object.entries(value)) {
    const here = path === '' ? key : `${path}.${key}`
    if (typeof it === 'number' && Number.isInteger(it) && !Number.isSafeInteger(it)) {
      const source = writtenAs(value, key)
      if (WHOLE.test(source)) return { path: here, source }
    }
    const below = inexactInteger(it, here)
    if (below !== undefined) return below
  }
  return undefined
}
