// One request and its streamed answer over HTTP, from the bytes to the frames.
import type { ModelReply } from '@oxbow/core'
import { cutError, type Limits, limitError, startAnswer } from './answer.ts'
import type { ReplyAssembler } from './assembler.ts'
import type { Clock, Timeouts } from './clock.ts'
import { bodyError, type ErrorContext, httpError, networkError, redirectError } from './provider-errors.ts'
import { sseReader } from './sse.ts'

export interface Endpoint {
  readonly context: ErrorContext
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeouts: Timeouts
  readonly limits: Required<Limits>
  readonly fetch: typeof globalThis.fetch | undefined
}

interface Reader {
  /** The next bytes, undefined at the end. Rejects with `tooLong`. */
  read(): Promise<Uint8Array | undefined>
}

/** Sends `body` and feeds the answer to the assembler. Rejects with a `ModelError`, at once when `signal` aborts. */
export function exchange(
  endpoint: Endpoint,
  body: string,
  assembler: ReplyAssembler,
  signal: AbortSignal,
): Promise<ModelReply> {
  const { context, limits } = endpoint
  const abort = new AbortController()
  /** The response, from the moment its head has come. */
  let response: Response | undefined
  let endOfBody: NodeJS.Timeout | undefined
  const answer = startAnswer({
    context,
    timeouts: endpoint.timeouts,
    limits,
    assembler,
    signal,
    abort: () => abort.abort(),
    onSettled: () => clearTimeout(endOfBody),
    onTimeout: () => (response?.ok === false ? httpError(context, response.status, response.headers, '') : undefined),
  })
  const { clock, frame, succeed, fail, ended, partial } = answer

  const readEvents = async (start: Uint8Array, reader: Reader) => {
    let bytesEnded = false
    let whole = false
    const end = () => {
      // The connection can be used again once the body has ended, which is at once: a next call need not open another.
      whole = true
      endOfBody = setTimeout(succeed, END_OF_BODY_MS)
    }
    const events = sseReader((data) => {
      // What follows the end is no part of this answer.
      if (answer.settled || whole) return
      if (data === '[DONE]') return assembler.complete || assembler.mayEnd ? end() : fail(cutError(context, partial()))
      // What is no object is some gateway's sign of life; a broken object is a lost piece of the answer.
      if (data.charCodeAt(0) !== openingBrace) return
      let value: object
      try {
        value = JSON.parse(data)
      } catch {
        // The last event of a stream that was cut is no more broken than the stream.
        if (bytesEnded) return
        const hint = 'A frame of its stream was broken JSON. Try again.'
        return fail(bodyError(context, data, hint, { retryable: true, ...partial() }))
      }
      frame(value)
      if (assembler.ended) end()
    })
    events.push(start)
    while (!answer.settled) {
      const bytes = await reader.read()
      if (answer.settled) break
      if (bytes === undefined) {
        bytesEnded = true
        events.end()
        if (whole) return succeed()
        return ended(() => cutError(context, partial()))
      }
      events.push(bytes)
    }
    void drain(reader, abort)
  }

  /** The body is one document and no event stream. */
  const readDocument = async (start: Uint8Array, reader: Reader) => {
    const text = await readRest(start, reader, clock)
    let value: object
    try {
      value = JSON.parse(text)
    } catch {
      const isPage = text.trimStart().startsWith('<')
      const hint = isPage ? 'It sent a web page: check the base URL.' : 'It sent broken JSON. Try again.'
      return fail(bodyError(context, text, hint, { retryable: !isPage }))
    }
    frame(value)
    if (assembler.complete || assembler.started) succeed()
    else fail(bodyError(context, text, 'Check the base URL.'))
  }

  const run = async () => {
    response = await (endpoint.fetch ?? fetch)(endpoint.url, {
      method: 'POST',
      headers: endpoint.headers,
      body,
      signal: abort.signal,
      // Followed, it would take the conversation, and with 307 the key in a header of its own, to whoever it names.
      redirect: 'manual',
    })
    if (response.type === 'opaqueredirect' || (response.status >= 300 && response.status < 400)) {
      return fail(redirectError(context, response.status, response.headers.get('location')))
    }
    if (!response.ok) {
      return fail(httpError(context, response.status, response.headers, await readError(response)))
    }
    const reader = boundedReader(response, limits.answerBytes)
    // Some send empty lines as a sign of life, also before a document.
    let first = await reader.read()
    while (first !== undefined && firstCharacter(first) === '') first = await reader.read()
    if (answer.settled) return
    clock.firstByte()
    if (first === undefined) return fail(cutError(context, {}))
    const character = firstCharacter(first)
    const isDocument = character === '{' || character === '[' || character === '<'
    await (isDocument ? readDocument(first, reader) : readEvents(first, reader))
  }

  if (answer.settled) return answer.reply
  run().catch((error: unknown) => {
    if (answer.settled) return
    ended(() => {
      if (error === tooLong) return limitError(context, limits, 'answerBytes', partial())
      return response ? cutError(context, partial(), error) : networkError(context, error)
    })
    abort.abort()
  })
  return answer.reply
}

const openingBrace = 123
/** How long the end of a body may take after the last event. */
const END_OF_BODY_MS = 25

/** Of the body of an error nobody reads more. */
const errorBytes = 64 * 1024
const tooLong = new Error('The body is longer than an answer may be.')

/** The first character after a byte order mark and white space; no event stream begins with a bracket. */
const firstCharacter = (bytes: Uint8Array): string => new TextDecoder().decode(bytes).trimStart().charAt(0)

async function readRest(start: Uint8Array, reader: Reader, clock: Clock): Promise<string> {
  const parts = [start]
  for (;;) {
    const bytes = await reader.read()
    clock.progress()
    if (bytes === undefined) return new TextDecoder().decode(Buffer.concat(parts))
    parts.push(bytes)
  }
}

/** Counts what comes, after it was unpacked: a few kilobytes can unpack to gigabytes. */
function boundedReader({ body }: Response, limit: number): Reader {
  const reader = body?.getReader()
  let total = 0
  return {
    async read() {
      const bytes = (await reader?.read())?.value
      total += bytes?.length ?? 0
      if (total > limit) throw tooLong
      return bytes
    },
  }
}

/** The beginning of an error's body; the rest is not waited for. */
async function readError({ body }: Response): Promise<string> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of body ?? []) {
    parts.push(part)
    bytes += part.length
    if (bytes > errorBytes) break
  }
  return new TextDecoder().decode(Buffer.concat(parts).subarray(0, errorBytes))
}

/** Reads a stream to its end after its last event, so that the connection can be used again; gives it a second for that. */
async function drain(reader: Reader, abort: AbortController): Promise<void> {
  const timer = setTimeout(() => abort.abort(), 1_000)
  timer.unref()
  try {
    while ((await reader.read()) !== undefined) {}
  } catch {
    // The answer is complete; how its connection ends is nobody's concern. One that goes on for too long is closed.
    abort.abort()
  } finally {
    clearTimeout(timer)
  }
}
