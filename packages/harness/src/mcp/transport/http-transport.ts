// A server over HTTP: streamable HTTP, or the two endpoints of its predecessor.
import {
  isJSONRPCRequest,
  SSEClientTransport,
  StreamableHTTPClientTransport,
  type Transport,
} from '@modelcontextprotocol/client'
import { OxbowError } from '@oxbow/core'
import { authProvider } from '../auth/oauth.ts'
import { guardedFetch } from '../auth/oauth-fetch.ts'
import { NO_ANSWER } from '../errors.ts'
import { MAX_MESSAGE_BYTES, type McpHttpServer } from '../options.ts'

export interface HttpTransport extends Transport {
  /** Ends the session, where the server has one. */
  terminateSession?(): Promise<void>
  /** With the query of the address that the authorization server sent the user back to. */
  finishAuth(callback: URLSearchParams): Promise<void>
}

export function httpTransport(server: McpHttpServer): HttpTransport {
  const url = new URL(server.url)
  const options = {
    fetch: boundedFetch(guardedFetch(server), server.maxMessageBytes ?? MAX_MESSAGE_BYTES),
    ...(server.auth !== undefined && { authProvider: authProvider(server.auth, server.url) }),
  }
  if (server.transport === 'sse') return new SSEClientTransport(url, options)
  const transport = new StreamableHTTPClientTransport(url, options)
  const send = transport.send.bind(transport)
  // The library waits for an answer until it times out, also when the stream that it would have come on has ended.
  transport.send = (message, given) => {
    if (Array.isArray(message) || !isJSONRPCRequest(message)) return send(message, given)
    const { id } = message
    const onRequestStreamEnd = (): void => {
      given?.onRequestStreamEnd?.()
      transport.onmessage?.({
        jsonrpc: '2.0',
        id,
        error: { code: NO_ANSWER, message: 'The stream ended without an answer.' },
      })
    }
    return send(message, { ...given, onRequestStreamEnd })
  }
  return transport
}

/** Fails a body that holds a longer message than that. In an event stream each event counts for itself. */
const boundedFetch =
  (guarded: typeof fetch, limit: number): typeof fetch =>
  async (input, init) => {
    const response = await guarded(input, init)
    const { body } = response
    if (body === null) return response
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
    let length = 0
    let before: Uint8Array = new Uint8Array()
    const counted = body.pipeThrough(
      new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
        transform(chunk, controller) {
          const end = isStream ? afterLastBlankLine(before, chunk) : undefined
          length = end === undefined ? length + chunk.length : chunk.length - end
          if (isStream) before = joined(before, chunk.subarray(-MAX_BLANK)).slice(-MAX_BLANK)
          if (length > limit)
            controller.error(new OxbowError('mcp_too_long', `The server sent a message of more than ${limit} bytes.`))
          else controller.enqueue(chunk)
        },
      }),
    )
    const { status, statusText, headers } = response
    const copy = new Response(counted, { status, statusText, headers })
    // A new response has no address, and redirects are judged by it.
    Object.defineProperty(copy, 'url', { value: response.url })
    return copy
  }

const NEWLINE = 10
const RETURN = 13

/** Two ends of lines after each other, of two bytes each at most. */
const MAX_BLANK = 4

/** Where in `chunk` the last event ends that ends in it; a blank line may have begun `before` it. Undefined: none does. */
function afterLastBlankLine(before: Uint8Array, chunk: Uint8Array): number | undefined {
  const within = lastBlankLine(chunk)
  if (within !== -1) return within
  const end = lastBlankLine(joined(before, chunk.subarray(0, MAX_BLANK - 1))) - before.length
  return end > 0 ? end : undefined
}

/** Behind the last blank line, which ends an event; -1 without one. Lines end with CR, LF or both. */
function lastBlankLine(bytes: Uint8Array): number {
  for (let at = bytes.length - 1; at > 0; at--) {
    if (!isEnd(bytes[at])) continue
    const before = bytes[at] === NEWLINE && bytes[at - 1] === RETURN ? at - 2 : at - 1
    if (isEnd(bytes[before])) return at + 1
  }
  return -1
}

const isEnd = (byte: number | undefined): boolean => byte === NEWLINE || byte === RETURN

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length)
  both.set(a)
  both.set(b, a.length)
  return both
}
