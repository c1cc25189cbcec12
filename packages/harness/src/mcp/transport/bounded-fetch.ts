// Bounded response bodies: a message may be as long as the operator allows and no longer.
import { OxbowError } from '@oxbow/core'

const LF = 10
const CR = 13

/**
 * A `fetch` whose bodies fail when a message in them is longer than `limit` bytes. In an event stream each event counts
 * separately, and its lines end with LF: the library waits for one more byte after a CR, which may not arrive for
 * hours.
 *
 * @param onTooLong receives the error and the request whose answer was too long
 * @example boundedFetch(fetch, 10_000_000, (error) => console.error(error.message))
 */
export const boundedFetch =
  (
    inner: typeof fetch,
    limit: number,
    onTooLong: (error: OxbowError, request: RequestInit | undefined) => void,
  ): typeof fetch =>
  async (input, init) => {
    const response = await inner(input, init)
    const { body } = response
    if (body === null) return response
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
    const lines = isStream ? eventLines() : undefined
    let length = 0
    const counted = body.pipeThrough(
      new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
        transform(chunk, controller) {
          const { bytes, rest } = lines?.(chunk) ?? { bytes: chunk, rest: undefined }
          length = rest ?? length + bytes.length
          if (length <= limit) return controller.enqueue(bytes)
          const error = new OxbowError('mcp_too_long', `The server sent a message of more than ${limit} bytes.`)
          onTooLong(error, init)
          controller.error(error)
        },
      }),
    )
    const { status, statusText, headers } = response
    const copy = new Response(counted, { status, statusText, headers })
    // A new Response has no URL, which the redirect check needs.
    Object.defineProperty(copy, 'url', { value: response.url })
    return copy
  }

interface Lines {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** How many bytes follow the last blank line, which ends an event; undefined without one. */
  readonly rest?: number
}

/** Chunk by chunk: every line end as LF, and where the last event of the chunk ends. */
function eventLines(): (chunk: Uint8Array<ArrayBuffer>) => Lines {
  let afterCr = false
  let afterLf = false
  return (chunk) => {
    const bytes = chunk.includes(CR) || afterCr ? unified(chunk, afterCr) : chunk
    if (chunk.length > 0) afterCr = chunk.at(-1) === CR
    const end = afterBlankLine(bytes, afterLf)
    if (bytes.length > 0) afterLf = bytes.at(-1) === LF
    return end === undefined ? { bytes } : { bytes, rest: bytes.length - end }
  }
}

function unified(chunk: Uint8Array<ArrayBuffer>, afterCr: boolean): Uint8Array<ArrayBuffer> {
  const result = new Uint8Array(chunk.length)
  let length = 0
  let wasCr = afterCr
  for (const byte of chunk) {
    if (byte !== LF || !wasCr) result[length++] = byte === CR ? LF : byte
    wasCr = byte === CR
  }
  return result.subarray(0, length)
}

function afterBlankLine(bytes: Uint8Array, afterLf: boolean): number | undefined {
  for (let at = bytes.lastIndexOf(LF); at > 0; at = bytes.lastIndexOf(LF, at - 1))
    if (bytes[at - 1] === LF) return at + 1
  return afterLf && bytes[0] === LF ? 1 : undefined
}
