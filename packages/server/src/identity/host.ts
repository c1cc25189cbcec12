// Requests to the host system or to an issuer of keys: bounded in time, size and number, with a circuit breaker.

export interface HostAnswer {
  readonly status: number
  readonly text: string
}

/** The host did not give a usable answer. */
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
const MAX_CONCURRENT = 100
/** The circuit breaker opens after this many failures in a row, for longer each time. */
const FAILURES = 3
const FIRST_PAUSE_MS = 500
const MAX_PAUSE_MS = 30_000

export function host(timeoutMs: number, now: () => number = () => performance.now()): Host {
  let failures = 0
  let openUntil = 0
  let concurrent = 0

  /** After a pause, one request tests the host while the others keep waiting. */
  function enter(): void {
    const wait = openUntil - now()
    if (wait > 0) throw new HostUnavailable('circuit breaker open after repeated failures', wait)
    if (concurrent >= MAX_CONCURRENT) throw new HostUnavailable(`${MAX_CONCURRENT} requests are already waiting for it`)
    if (failures >= FAILURES) openUntil = now() + timeoutMs
  }
  function failed(): void {
    failures += 1
    if (failures >= FAILURES)
      openUntil = now() + Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures - FAILURES, 10))
  }

  return {
    async ask(url, request) {
      enter()
      concurrent += 1
      try {
        // A redirect is not followed: it would take the credentials elsewhere.
        const signal = AbortSignal.timeout(timeoutMs)
        const answer = await fetch(url, { ...request, redirect: 'manual', signal })
        const text = await bounded(answer)
        // Other errors of the host may concern this caller only.
        if ([502, 503, 504].includes(answer.status)) failed()
        else failures = openUntil = 0
        return { status: answer.status, text }
      } catch (error) {
        if (!(error instanceof HostUnavailable)) failed()
        throw error instanceof HostUnavailable
          ? error
          : new HostUnavailable(`no answer: ${describe(error)}`, Math.max(1_000, openUntil - now()), { cause: error })
      } finally {
        concurrent -= 1
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
