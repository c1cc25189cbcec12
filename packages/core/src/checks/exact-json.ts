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
export const parseExact = (text: string): unknown => parseHeld(text)['']

/** A value without an object or list around it, in one that remembers how it was written. */
export interface Held {
  '': unknown
}

/**
 * The same for a value that may be a bare number.
 *
 * @throws SyntaxError
 */
export function parseHeld(text: string): Held {
  if (!MAY_DIFFER.test(text)) return { '': JSON.parse(text) as unknown }
  const remember = (holder: object, key: string, source: string): void => {
    sources.set(holder, (sources.get(holder) ?? new Map<string, string>()).set(key, source))
  }
  /** Of the value that came last, which in the end is the whole. */
  let last: string | undefined
  const value = JSON.parse(text, function (this: object, key: string, it: unknown, context?: { source?: string }) {
    const source = context?.source
    last = typeof it === 'number' && source !== String(it) ? source : undefined
    if (last !== undefined) remember(this, key, last)
    return it
  } as (this: unknown, key: string, value: unknown) => unknown) as unknown
  const held = { '': value }
  if (last !== undefined) remember(held, '', last)
  return held
}

/** How the number under `key` was written: `1.10`, or `2064875200729235458`, which as a number would be another one. */
export const writtenAs = (holder: object, key: string): string =>
  sources.get(holder)?.get(key) ?? String((holder as Record<string, unknown>)[key])

/**
 * JSON like that of `JSON.stringify`, with the numbers as they were written in the text that `parseExact` parsed.
 *
 * @example stringifyExact(parseExact('{"price":1.10}')) // '{"price":1.10}'
 */
export const stringifyExact = (value: unknown): string =>
  JSON.stringify(value, function (this: object, key: string, it: unknown) {
    return typeof it === 'number' && sources.get(this)?.has(key) ? rawJSON(writtenAs(this, key)) : it
  })

const { rawJSON } = JSON as unknown as { rawJSON(text: string): object }

const WHOLE = /^-?\d+(\.0+)?$/
/** Decimals are printed with up to this many digits by programs that mean the nearest double. */
const DOUBLE_DIGITS = 17

/**
 * The first number in a parsed value that a double cannot hold, as `{ path, source }`; undefined if there is none.
 *
 * @example inexactNumber(parseExact('{"id":2064875200729235458}')) // { path: 'id', source: '2064875200729235458' }
 */
export function inexactNumber(value: unknown, path = ''): { path: string; source: string } | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, it] of Object.entries(value)) {
    const here = path === '' || key === '' ? path + key : `${path}.${key}`
    if (typeof it === 'number') {
      const source = writtenAs(value, key)
      if (isChanged(it, source)) return { path: here, source }
    }
    const below = inexactNumber(it, here)
    if (below !== undefined) return below
  }
  return undefined
}

function isChanged(number: number, source: string): boolean {
  if (!Number.isFinite(number)) return true
  const digits = digitsOf(source)
  if (digits.length > DOUBLE_DIGITS) return true
  const isLarge = Number.isInteger(number) && !Number.isSafeInteger(number)
  return isLarge && (WHOLE.test(source) || digits !== digitsOf(String(number)))
}

/** Without zeros at both ends, sign, point and exponent. */
const digitsOf = (source: string): string =>
  source
    .replace(/e.*/i, '')
    .replace(/[-.]/g, '')
    .replace(/^0+|0+$/g, '')
