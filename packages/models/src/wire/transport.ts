// How a request is sent and its answer received: over node:http, or through the caller's `fetch`. Both push the bytes
// to one receiver, without web streams in between. See docs/decisions for the figures.
import http, { type IncomingMessage } from 'node:http'
import type * as Https from 'node:https'
import type * as Zlib from 'node:zlib'

export interface OutgoingRequest {
  readonly url: string
  /** In lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface ResponseHead {
  readonly status: number
  /** The value of a header by its lower-case name. */
  header(name: string): string | undefined
}

/** Called in this order; never after `onEnd`, `onError` or `abort`. */
export interface Receiver {
  onHead(head: ResponseHead): void
  /** Bytes of the body, decompressed. */
  onData(bytes: Uint8Array): void
  onEnd(): void
  onError(error: unknown): void
}

export interface Transfer {
  /** Closes the connection. */
  abort(): void
}

export type Send = (request: OutgoingRequest, receiver: Receiver) => Transfer

/**
 * Sends a POST over node:http or node:https. Redirects are not followed. It uses the process's global agents, which
 * keep connections open and go through a proxy where the process has one configured (`NODE_USE_ENV_PROXY`,
 * `http.setGlobalProxyFromEnv()`). TLS follows the process settings too (`NODE_EXTRA_CA_CERTS`).
 */
export const sendOverHttp: Send = ({ url, headers, body }, receiver) => {
  const { request } = url.startsWith('https:') ? builtin<typeof Https>('node:https') : http
  const options = {
    method: 'POST',
    headers: { 'accept-encoding': 'gzip, br', ...headers, 'content-length': Buffer.byteLength(body) },
  }
  let over = false
  let responded = false
  const fail = (error: unknown) => {
    if (over) return
    over = true
    receiver.onError(error)
  }
  const receive = (response: IncomingMessage) => {
    if (over) return
    responded = true
    response.on('error', fail)
    receiver.onHead({ status: response.statusCode ?? 0, header: (name) => textOf(response.headers[name]) })
    const unpacked = unpack(response, fail)
    unpacked.on('data', (chunk: Buffer) => {
      if (!over) receiver.onData(chunk)
    })
    unpacked.on('end', () => {
      if (over) return
      over = true
      receiver.onEnd()
    })
  }
  const start = () => {
    const outgoing = request(url, options, receive)
    outgoing.on('error', (error: NodeJS.ErrnoException) => {
      // The server closed an idle connection while the request was on its way: the request is sent over another one.
      const isStale = outgoing.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE')
      if (isStale && !over && !responded) current = start()
      else fail(error)
    })
    // As text, because Node then sends headers and body in one write.
    outgoing.end(body)
    return outgoing
  }
  let current = start()
  return {
    abort() {
      over = true
      current.destroy()
    },
  }
}

/** The same through the caller's `fetch`. */
export const sendWithFetch =
  (fetch: typeof globalThis.fetch): Send =>
  ({ url, headers, body }, receiver) => {
    const abort = new AbortController()
    const run = async () => {
      const response = await fetch(url, { method: 'POST', headers, body, signal: abort.signal, redirect: 'manual' })
      if (abort.signal.aborted) return
      receiver.onHead({ status: response.status, header: (name) => response.headers.get(name) ?? undefined })
      const reader = response.body?.getReader()
      for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
        if (abort.signal.aborted) return
        receiver.onData(part.value)
      }
      if (!abort.signal.aborted) receiver.onEnd()
    }
    run().catch((error: unknown) => {
      if (!abort.signal.aborted) receiver.onError(error)
    })
    return { abort: () => abort.abort() }
  }

const textOf = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value.join(', ') : value

/** Loaded on first use: TLS and zlib slow down a start that may need neither. */
const builtin = <Module>(name: string): Module => process.getBuiltinModule(name) as Module

/** Data is emitted as it arrives, and a body that ends early is a connection error, not a decompression error. */
function unpack(response: IncomingMessage, fail: (error: unknown) => void): NodeJS.ReadableStream {
  const encoding = response.headers['content-encoding']?.trim().toLowerCase() ?? 'identity'
  if (encoding === 'identity' || encoding === '') return response
  const zlib = builtin<typeof Zlib>('node:zlib')
  const { Z_SYNC_FLUSH, BROTLI_OPERATION_FLUSH } = zlib.constants
  const eager = { flush: Z_SYNC_FLUSH, finishFlush: Z_SYNC_FLUSH }
  const brotli = { flush: BROTLI_OPERATION_FLUSH, finishFlush: BROTLI_OPERATION_FLUSH }
  const unpacker =
    encoding === 'gzip' || encoding === 'x-gzip'
      ? zlib.createGunzip(eager)
      : encoding === 'deflate'
        ? zlib.createInflate(eager)
        : encoding === 'br'
          ? zlib.createBrotliDecompress(brotli)
          : undefined
  if (unpacker === undefined) {
    fail(new Error(`The body has the content encoding ${encoding}, which is not supported.`))
    return response
  }
  unpacker.on('error', fail)
  return response.pipe(unpacker)
}
