// Asking the host system, or an issuer of keys: bounded in time, size and number, and not again and again while it is
// down.

export interface HostAnswer {
  readonly status: number
  readonly text: string
}

/** It did not answer in a way that means anything. */
export class HostUnavailable extends Error {
  readonly retryAfterMs: number

  constructor(message: string, retryAfterMs = 1_000, options?: ErrorOptions) {
    super(message, options)
    this.name = 'HostUnavailable'
    this.retryAfterMs = retryAfterMs
  }
}

export interface Host {
  /** @throws HostUnavailable */
  ask(url: string, request: { method: string; headers: Readonly<Record<string, string>> }): Promise<HostAnswer>
}

const MAX_BYTES = 1_048_576
const MAX_AT_ONCE = 100
/** After so many failures in a row it is left alone for a while, and longer each time. */
const FAILURES = 3
const FIRST_REST_MS = 500
const LONGEST_REST_MS = 30_000

export function host(timeoutMs: number, now: () => number = () => performance.now()): Host {
  let failures = 0
  let restUntil = 0
  let atOnce = 0

  /** One request finds out whether a rest is over; the others keep waiting for it. */
  function enter(): void {
    const wait = restUntil - now()
    if (wait > 0) throw new HostUnavailable('it has failed several times in a row and is left alone for now', wait)
    if (atOnce >= MAX_AT_ONCE) throw new HostUnavailable(`${MAX_AT_ONCE} requests wait for it already`)
    if (failures >= FAILURES) restUntil = now() + timeoutMs
  }
  function failed(): void {
    failures += 1
    if (failures >= FAILURES)
      restUntil = now() + Math.min(LONGEST_REST_MS, FIRST_REST_MS * 2 ** Math.min(failures - FAILURES, 10))
  }

  return {
    async ask(url, request) {
      enter()
      atOnce += 1
      try {
        // A redirect is not followed: it would take the credentials elsewhere.
        const signal = AbortSignal.timeout(timeoutMs)
        const answer = await fetch(url, { ...request, redirect: 'manual', signal })
        const text = await bounded(answer)
        // Other errors of the host may be about this one caller.
        if ([502, 503, 504].includes(answer.status)) failed()
        else failures = restUntil = 0
        return { status: answer.status, text }
      } catch (error) {
        if (!(error instanceof HostUnavailable)) failed()
        throw error instanceof HostUnavailable
          ? error
          : new HostUnavailable(`no answer: ${describe(error)}`, Math.max(1_000, restUntil - now()), { cause: error })
      } finally {
        atOnce -= 1
      }
    },
  }
}

const describe = (error: unknown): string => {
  const { name, cause } = error as { name?: string; cause?: { code?: string } }
  return cause?.code ?? name ?? 'unknown'
}

async function bounded(answer: Response): Promise<string> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of answer.body ?? []) {
    bytes += part.length
    if (bytes > MAX_BYTES) throw new HostUnavailable(`the answer is longer than ${MAX_BYTES} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}

/** @throws HostUnavailable */
export function jsonOf({ text, status }: HostAnswer): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new HostUnavailable(`the answer (status ${status}) is not JSON`)
  }
}
