// How long a provider asks to wait.

const MAX_RETRY_AFTER_MS = 120_000

/**
 * @param header of the answer, by lower-case name
 * @returns milliseconds, at most two minutes; undefined for a value that cannot be parsed
 */
export function retryAfterOf(
  header: (name: string) => string | undefined,
  body: string,
  message: string,
): number | undefined {
  const ms = inHeaders(header) ?? retryDelay(body) ?? inWords(message)
  return ms === undefined ? undefined : Math.min(Math.max(0, Math.round(ms)), MAX_RETRY_AFTER_MS)
}

/** Google's retry delay, inside the body. In milliseconds. */
export function retryDelay(body: string): number | undefined {
  const seconds = /"retryDelay":\s*"(\d+(?:\.\d+)?)s"/.exec(body)?.[1]
  return seconds === undefined ? undefined : Math.ceil(Number(seconds) * 1000)
}

/** Seconds, an HTTP date, or Azure's milliseconds. */
function inHeaders(header: (name: string) => string | undefined): number | undefined {
  const value = header('retry-after')?.trim() ?? ''
  const millis = header('retry-after-ms')?.trim() ?? ''
  const isNumber = /^\d+(\.\d+)?$/
  if (isNumber.test(millis)) return Number(millis)
  if (isNumber.test(value)) return Number(value) * 1000
  const date = /^[A-Z][a-z]+, .* GMT$/.test(value) ? Date.parse(value) : Number.NaN
  return Number.isNaN(date) ? undefined : date - Date.now()
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }

/** "Please try again in 6.5s", "in 1m26.4s", "in 857ms", "retry after 20 seconds". */
function inWords(message: string): number | undefined {
  const [, text = ''] =
    /(?:try again|retry|wait)(?: again)? (?:in|after|for) ((?:\d+(?:\.\d+)? ?(?:ms|milliseconds?|s|sec(?:ond)?s?|m|min(?:ute)?s?|h|hours?)\b ?|\d+(?:\.\d+)?[hm](?=\d))+)/i.exec(
      message,
    ) ?? []
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?) ?([a-z]+)/gi)]
  if (parts.length === 0) return undefined
  return parts.reduce((sum, [, number, unit = '']) => {
    const name = /^(ms|milli)/i.test(unit) ? 'ms' : unit.charAt(0).toLowerCase()
    return sum + Number(number) * (UNIT_MS[name] ?? 0)
  }, 0)
}
