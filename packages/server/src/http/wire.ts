// Requests that Node rejects before routing: unreadable, too large or too slow heads, and unsupported expectations.
// Node would answer them with an empty body; here they get the usual error form.
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { errorBody } from './errors.ts'
import { plainHeaders } from './security.ts'

interface Refused {
  readonly status: number
  readonly phrase: string
  readonly code: string
  readonly message: string
}

const UNREADABLE: Refused = {
  status: 400,
  phrase: 'Bad Request',
  code: 'invalid_request',
  message: 'The request cannot be read as HTTP.',
}

const byCode: Readonly<Record<string, Refused>> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    phrase: 'Request Header Fields Too Large',
    code: 'head_too_large',
    message: 'The head of the request is too large.',
  },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: {
    status: 413,
    phrase: 'Payload Too Large',
    code: 'body_too_large',
    message: 'The extensions of the chunks are too large.',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    phrase: 'Request Timeout',
    code: 'request_timeout',
    message: 'The request took too long to arrive.',
  },
}

/** How long a client may take to read its refusal. */
const LINGER_MS = 1_000

export function refuseOnTheWire(server: Server): void {
  const refused = new WeakSet<Socket>()
  const answers = new WeakMap<Socket, ServerResponse>()
  server.on('request', ({ socket }, response) => void answers.set(socket, response))
  server.on('checkExpectation', (_request, response) => {
    const body = JSON.stringify(errorBody('expectation_failed', 'Only the expectation 100-continue is supported.'))
    response.writeHead(417, headersOf(body)).end(body)
  })
  server.on('clientError', (error: NodeJS.ErrnoException, stream) => {
    const socket = stream as Socket
    const answer = answers.get(socket)
    // After an answer has begun, an error could not be understood.
    if (!socket.writable || (answer?.headersSent === true && !answer.writableFinished)) {
      socket.destroy()
      return
    }
    if (refused.has(socket)) return
    refused.add(socket)
    refuse(socket, byCode[error.code ?? ''] ?? UNREADABLE)
  })
}

/** Sends the answer and closes the connection. */
export function refuse(socket: Duplex, refused: Refused): void {
  socket.write(textOf(refused))
  endSoon(socket)
}

/**
 * Ends a connection whether or not the client reads to its end. Incoming data is read and dropped, because it would
 * keep the connection open, and closing at once would lose the answer.
 */
export function endSoon(socket: Duplex): void {
  socket.end()
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(timer))
}

function textOf({ status, phrase, code, message }: Refused): string {
  const body = JSON.stringify(errorBody(code, message))
  const fields = Object.entries(headersOf(body)).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${phrase}\r\n${fields.join('')}\r\n${body}`
}

const headersOf = (body: string): Record<string, string> => ({
  ...plainHeaders,
  'content-type': 'application/json',
  'content-length': String(Buffer.byteLength(body)),
  connection: 'close',
})
