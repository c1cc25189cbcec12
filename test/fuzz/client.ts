// A client that sends exactly the given bytes: libraries refuse to send what an attacker would.
import { connect } from 'node:net'

export interface RawRequest {
  readonly method: string
  /** As written in the request line. */
  readonly target: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Buffer
  /** Sent in this many pieces, each in its own turn of the event loop. */
  readonly pieces: number
}

export interface RawAnswer {
  /** Undefined when the connection ended without an answer. */
  readonly status: number | undefined
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
  /** Everything that came, to be searched for what must not come. */
  readonly raw: string
  /** The other side ended it; else this side had waited long enough. */
  readonly ended: boolean
  readonly ms: number
}

/**
 * Sends one request on a connection of its own. Leaves an event stream that has begun after `streamMs`, all else after
 * `boundMs`.
 */
export async function send(
  url: string,
  request: RawRequest,
  limits: { readonly boundMs: number; readonly streamMs: number },
): Promise<RawAnswer> {
  const { hostname, port } = new URL(url)
  const startedAt = performance.now()
  const socket = connect(Number(port), hostname)
  const parts: Buffer[] = []
  let ended = true
  const leave = (): void => {
    ended = false
    socket.destroy()
  }
  const bound = setTimeout(leave, limits.boundMs)
  let stream: NodeJS.Timeout | undefined
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  // Refusals come before the whole of a body was sent, and close the connection.
  socket.on('error', () => {})
  socket.on('data', (data) => {
    parts.push(data)
    if (stream === undefined && /^content-type: text\/event-stream/im.test(Buffer.concat(parts).toString('latin1')))
      stream = setTimeout(leave, limits.streamMs)
  })
  const { method, target, headers, body, pieces } = request
  const fields = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  socket.write(Buffer.from(`${method} ${target} HTTP/1.1\r\n${fields}connection: close\r\n\r\n`))
  const size = Math.ceil(body.length / Math.max(1, pieces))
  for (let at = 0; at < body.length && !socket.destroyed; at += size) {
    socket.write(body.subarray(at, at + size))
    await new Promise(setImmediate)
  }
  await closed
  clearTimeout(bound)
  clearTimeout(stream)
  return { ...parse(Buffer.concat(parts).toString(), method), ended, ms: performance.now() - startedAt }
}

function parse(raw: string, method: string): Omit<RawAnswer, 'ended' | 'ms'> {
  // An interim answer (100) is none.
  const text = raw.replace(/^HTTP\/1\.1 100 [\s\S]*?\r\n\r\n/, '')
  const cut = text.indexOf('\r\n\r\n')
  const [line = '', ...fields] = (cut < 0 ? text : text.slice(0, cut)).split('\r\n')
  const headers = new Map(
    fields.map((it) => {
      const colon = it.indexOf(':')
      return [it.slice(0, colon).toLowerCase(), it.slice(colon + 1).trim()]
    }),
  )
  const rest = cut < 0 ? '' : text.slice(cut + 4)
  const body = method === 'HEAD' ? '' : headers.get('transfer-encoding') === 'chunked' ? unchunked(rest) : rest
  const status = /^HTTP\/1\.1 (\d{3})/.exec(line)?.[1]
  return { status: status === undefined ? undefined : Number(status), headers, body, raw }
}

/** Chunk sizes count bytes. */
function unchunked(text: string): string {
  const bytes = Buffer.from(text)
  const parts: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf('\r\n', at)
    const size = end < 0 ? 0 : Number.parseInt(bytes.subarray(at, end).toString('latin1'), 16)
    if (!(size > 0)) break
    parts.push(bytes.subarray(end + 2, end + 2 + size))
    at = end + 2 + size + 2
  }
  return Buffer.concat(parts).toString()
}
