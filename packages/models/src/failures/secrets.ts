// Secrets that no error may show: keys, and anything in headers and addresses that may be one. Providers echo them
// unchanged, inside JSON or percent-encoded.

/** Removes secrets from a text. */
export type Scrub = (text: string) => string

/** Shorter values of headers and queries are words such as `eu` and `v1`. */
const SHORTEST = 8
/** A key as short as a word only counts as a whole word. */
const INSIDE_WORDS = 8

export interface SecretSources {
  /** Keys and passwords, however short. */
  readonly keys?: readonly (string | undefined)[]
  /** Any header may hold a secret: its whole value, and each part of it, such as the one after `Bearer`. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly baseUrl?: string | undefined
}

/** @example scrubber({ keys: ['sk-secret'] })('refused sk-secret') // 'refused [key]' */
export function scrubber({ keys = [], headers = {}, baseUrl = '' }: SecretSources): Scrub {
  const inHeaders = Object.values(headers).flatMap((it) => [it.trim(), ...it.split(/[\s;,]+/), ...it.split(/[\s;,=]+/)])
  const found = [
    ...keys.flatMap((it) => it ?? []),
    ...inHeaders.filter((it) => it.length >= SHORTEST),
    ...secretsInAddress(baseUrl),
  ]
  const secrets = [...new Set(found)].filter((it) => it !== '').sort((a, b) => b.length - a.length)
  if (secrets.length === 0) return (text) => text
  const pattern = new RegExp(secrets.map(patternOf).join('|'), 'gu')
  return (text) => text.replace(pattern, '[key]')
}

/** The base URL without possible secrets. */
export function addressOf(baseUrl: string): string {
  if (!URL.canParse(baseUrl)) return 'its address'
  const { protocol, host, pathname } = new URL(baseUrl)
  const path = pathname.split('/').map((it) => (looksLikeKey(it) ? '[key]' : it))
  return `${protocol}//${host}${path.join('/')}`
}

/**
 * A copy of the error and its causes without secrets: libraries put whole addresses into their messages, and a logger
 * prints all of it. Custom fields, which may hold the conversation, are omitted.
 */
export function scrubbedError(scrub: Scrub, error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return typeof error === 'string' ? scrub(error) : undefined
  const cause = depth < 4 ? scrubbedError(scrub, error.cause, depth + 1) : undefined
  const clean = new Error(scrub(error.message), cause === undefined ? {} : { cause })
  clean.name = error.name
  clean.stack = scrub(error.stack ?? '')
  const { code, errors } = error as { readonly code?: unknown; readonly errors?: unknown }
  return Object.assign(clean, {
    ...(typeof code === 'string' && { code }),
    // A name with several addresses fails once for each.
    ...(Array.isArray(errors) && depth < 4 && { errors: errors.map((it) => scrubbedError(scrub, it, depth + 1)) }),
  })
}

function secretsInAddress(baseUrl: string): string[] {
  if (!URL.canParse(baseUrl)) return []
  const { searchParams, pathname, username, password } = new URL(baseUrl)
  // `api-version=2025-04-01-preview` is not a secret, and is useful to see.
  const query = [...searchParams].flatMap(([name, value]) => (/version$/i.test(name) ? [] : [value]))
  return [
    ...query.filter((it) => it.length >= SHORTEST / 2),
    ...[username, password].map(decoded),
    ...pathname.split('/').filter(looksLikeKey).map(decoded),
  ]
}

/** Some gateways have the key in the path. Names of models and deployments consist of shorter words. */
const looksLikeKey = (segment: string): boolean =>
  /^(?:sk|pk|key|token)[-_]\w/i.test(segment) ||
  /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/i.test(segment) ||
  (segment.match(/[a-z\d]{16,}/gi) ?? []).some((run) => /\d/.test(run) && /[a-z]/i.test(run))

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Each character literally, after backslashes, as `\u002d`, or as `%2D`. */
function patternOf(secret: string): string {
  // A backslash in the key, among inserted ones, could match in exponentially many ways.
  if (secret.includes('\\'))
    return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret.toWellFormed())]
      .map(literal)
      .join('|')
  const inside = Array.from(secret, (character) => {
    const ways = [literal(character), ...(encoded(character) ?? [])]
    if (character.length === 1) ways.push(`u${anyCase(character.charCodeAt(0).toString(16).padStart(4, '0'))}`)
    return `\\\\{0,3}(?:${ways.join('|')})`
  }).join('')
  return secret.length >= INSIDE_WORDS ? inside : `(?<![\\p{L}\\d])${inside}(?![\\p{L}\\d])`
}

const literal = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')

function encoded(character: string): [string] | undefined {
  if (!character.isWellFormed()) return undefined
  return [[...Buffer.from(character)].map((byte) => `%${anyCase(byte.toString(16).padStart(2, '0'))}`).join('')]
}

const anyCase = (hex: string): string => hex.replace(/[a-f]/g, (it) => `[${it}${it.toUpperCase()}]`)
