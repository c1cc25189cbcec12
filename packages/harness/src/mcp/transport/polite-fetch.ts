// What servers ask of a client at the HTTP level: another URL, or a later time.
import { setTimeout as delay } from 'node:timers/promises'

const MAX_REDIRECTS = 3
/** The longest delay of a call: beyond it the answer is returned unchanged. */
const MAX_WAIT_MS = 30_000

/**
 * A `fetch` that follows a moved POST (301, 302) within its origin, as the library does for 307 and 308, and that waits
 * once for `Retry-After`. Only a request that is known not to have been executed is sent again: after 429, or after 503
 * for anything but a tool call.
 *
 * @example politeFetch(fetch)
 */
export const politeFetch =
  (inner: typeof fetch): typeof fetch =>
  async (input, init) => {
    let target: Parameters<typeof fetch>[0] = input
    let waited = false
    for (let redirects = 0; ; ) {
      const response = await inner(target, init)
      const moved = redirects < MAX_REDIRECTS ? movedTo(target, init, response) : undefined
      const waitMs = waited ? undefined : waitFor(response, init)
      if (moved === undefined && waitMs === undefined) return response
      await response.text().catch(() => {})
      if (moved === undefined) {
        waited = true
        await delay(waitMs, undefined, init?.signal ? { signal: init.signal } : {})
      } else {
        redirects++
        target = moved
      }
    }
  }

function movedTo(
  from: Parameters<typeof fetch>[0],
  init: RequestInit | undefined,
  response: Response,
): URL | undefined {
  const location = response.headers.get('location')
  if (location === null || init?.method !== 'POST' || ![301, 302].includes(response.status)) return undefined
  const here = new URL(from instanceof Request ? from.url : from)
  if (!URL.canParse(location, here.href)) return undefined
  const there = new URL(location, here.href)
  const isSame = there.origin === here.origin && there.username === here.username && there.password === here.password
  return isSame ? there : undefined
}

function waitFor({ status, headers }: Response, init: RequestInit | undefined): number | undefined {
  const given = headers.get('retry-after')
  if (given === null || (status !== 429 && (status !== 503 || isToolCall(init)))) return undefined
  const waitMs = /^\d+$/.test(given.trim()) ? Number(given) * 1_000 : Date.parse(given) - Date.now()
  return waitMs >= 0 && waitMs <= MAX_WAIT_MS ? waitMs : undefined
}

/** True also for a body that cannot be parsed. */
function isToolCall(init: RequestInit | undefined): boolean {
  if (init?.method !== 'POST') return false
  try {
    return (JSON.parse(String(init.body)) as { method?: unknown }).method === 'tools/call'
  } catch {
    return true
  }
}
