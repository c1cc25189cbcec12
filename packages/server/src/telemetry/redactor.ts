// Redacts secrets in a finished log line: by field name, by form, and by the values of secret environment variables.

const SECRET_NAME = /key|token|secret|password|credential/i

const NAMES = 'authorization|cookie|api[-_]?key|token|secret|password'
const FIELD = new RegExp(`("[\\w-]{0,40}(?:${NAMES})[\\w-]{0,40}"\\s*:\\s*)"(?:[^"\\\\]|\\\\.)*"`, 'gi')
/**
 * Matches a field inside a JSON string, where quotes are escaped by backslashes; the value ends at a quote with as
 * many.
 */
const QUOTED_FIELD = new RegExp(
  `(?<!\\\\)(\\\\+)("[\\w-]{0,40}(?:${NAMES})[\\w-]{0,40}\\1"\\s*:\\s*\\1")(?:[^"\\\\]|(?<!\\\\)(?!\\1")\\\\+"?)*`,
  'gi',
)
const BEARER = /\b(Bearer|Basic)(\s|%20|\+)+[\w.~+/=%-]{8,}/gi
/** API keys of this service, plain or URL-encoded. Their ids are not secret. */
const API_KEY = /\boxb(?:_|%5f)([0-9a-f]{12})(?:_|%5f)[\w%-]*/gi
const SIGNED_TOKEN = /\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?/g
const PROVIDER_KEY = /\b(?:sk|pk|rk)[-_][\w-]{16,}/g

/**
 * @example redactor({ SERVICE_TOKEN: 'not-for-logs' })('{"msg":"sent not-for-logs"}') // '{"msg":"sent [redacted]"}'
 */
export function redactor(environment: Readonly<Record<string, string | undefined>>): (line: string) => string {
  const values = Object.entries(environment)
    .filter(([name, value]) => SECRET_NAME.test(name) && value !== undefined && value.length >= 8)
    .flatMap(([, value]) => [quoted(value!), quoted(quoted(value!)), encodeURIComponent(value!.toWellFormed())])
    // Longest first: one secret may begin with another.
    .sort((a, b) => b.length - a.length)
  return (line) => {
    let clean = line
      .replace(FIELD, '$1"[redacted]"')
      .replace(QUOTED_FIELD, '$1$2[redacted]')
      .replace(BEARER, '$1 [redacted]')
      .replace(API_KEY, 'oxb_$1_[redacted]')
      .replace(SIGNED_TOKEN, '[redacted]')
      .replace(PROVIDER_KEY, '[redacted]')
    for (const value of new Set(values)) clean = clean.replaceAll(value, '[redacted]')
    return clean
  }
}

const quoted = (value: string): string => JSON.stringify(value).slice(1, -1)
