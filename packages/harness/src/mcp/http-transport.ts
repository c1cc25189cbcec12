// A server over HTTP: streamable HTTP, or the two endpoints of its predecessor.
import {
  isJSONRPCRequest,
  SSEClientTransport,
  StreamableHTTPClientTransport,
  type Transport,
} from '@modelcontextprotocol/client'
import { OxbowError } from '@oxbow/core'
import { NO_ANSWER } from './errors.ts'
import { authProvider } from './oauth.ts'
import { MAX_MESSAGE_BYTES, type McpHttpServer } from './options.ts'

export interface HttpTransport extends Transport {
  /** Ends the session, where the server has one. */
  terminateSession?(): Promise<void>
  /** With the query of the address that the authorization server sent the user back to. */
  finishAuth(callback: URLSearchParams): Promise<void>
}

export function httpTransport(server: McpHttpServer): HttpTransport {
  const url = new URL(server.url)
  const options = {
    requestInit: { headers: { ...server.headers } },
    fetch: boundedFetch(server.maxMessageBytes ?? MAX_MESSAGE_BYTES),
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
  (limit: number): typeof fetch =>
  async (input, init) => {
    const response = await fetch(input, init)
    const { body } = response
    if (body === null) return response
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
    let length = 0
    const counted = body.pipeThrough(
      new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
        transform(chunk, controller) {
          const end = isStream ? lastBlankLine(chunk) : -1
          length = end === -1 ? length + chunk.length : chunk.length - end
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

/** Behind the last blank line, which ends an event; -1 without one. */
function lastBlankLine(chunk: Uint8Array): number {
  for (let at = chunk.length - 1; at > 0; at--) {
    if (chunk[at] !== NEWLINE) continue
    const before = chunk[at - 1] === RETURN ? at - 2 : at - 1
    if (before >= 0 && chunk[before] === NEWLINE) return at + 1
  }
  return -1
}
