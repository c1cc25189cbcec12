// A server over HTTP: streamable HTTP, or the two endpoints of its predecessor.
import {
  isJSONRPCRequest,
  SSEClientTransport,
  StreamableHTTPClientTransport,
  type Transport,
} from '@modelcontextprotocol/client'
import { authProvider } from '../auth/oauth.ts'
import { guardedFetch } from '../auth/oauth-fetch.ts'
import { NO_ANSWER } from '../errors.ts'
import { MAX_MESSAGE_BYTES, type McpHttpServer } from '../options.ts'
import { boundedFetch } from './bounded-fetch.ts'
import { politeFetch } from './polite-fetch.ts'

export interface HttpTransport extends Transport {
  /** Ends the session, if the server has one. */
  terminateSession?(): Promise<void>
  /** With the query of the URL to which the authorization server returned the user. */
  finishAuth(callback: URLSearchParams): Promise<void>
}

/** @example httpTransport({ url: 'https://docs.internal/mcp' }) */
export function httpTransport(server: McpHttpServer): HttpTransport {
  const url = new URL(server.url)
  // The library waits for an answer until its timeout, even when that answer can no longer arrive.
  const noAnswer = (id: string | number, message: string): void =>
    transport.onmessage?.({ jsonrpc: '2.0', id, error: { code: NO_ANSWER, message } })
  const polite = politeFetch(guardedFetch(server))
  const fetch = boundedFetch(
    async (input, init) => {
      const response = await polite(input, init)
      // 202 means that no answer follows. Only some older servers send it elsewhere, and those do not support this
      // request.
      const { id, method } = response.status === 202 ? requestIn(init) : {}
      if (id !== undefined && method === 'server/discover') noAnswer(id, 'the server answered 202')
      return response
    },
    server.maxMessageBytes ?? MAX_MESSAGE_BYTES,
    (error, request) => {
      const { id } = requestIn(request)
      if (id !== undefined) noAnswer(id, error.message)
    },
  )
  const options = { fetch, ...(server.auth !== undefined && { authProvider: authProvider(server.auth, server.url) }) }
  const transport =
    server.transport === 'sse' ? new SSEClientTransport(url, options) : new StreamableHTTPClientTransport(url, options)
  if (transport instanceof SSEClientTransport) return transport
  const send = transport.send.bind(transport)
  transport.send = (message, given) => {
    if (Array.isArray(message) || !isJSONRPCRequest(message)) return send(message, given)
    const onRequestStreamEnd = (): void => {
      given?.onRequestStreamEnd?.()
      noAnswer(message.id, 'the stream ended without an answer')
    }
    return send(message, { ...given, onRequestStreamEnd })
  }
  return transport
}

interface SentRequest {
  readonly id?: string | number
  readonly method?: string
}

function requestIn(init: RequestInit | undefined): SentRequest {
  try {
    return init?.method === 'POST' ? (JSON.parse(String(init.body)) as SentRequest) : {}
  } catch {
    return {}
  }
}
