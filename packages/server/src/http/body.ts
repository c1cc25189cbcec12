// Request bodies: bounded, UTF-8, JSON.
import type { Context } from 'hono'
import { HttpError } from './errors.ts'
import { parseJson } from './json.ts'

export interface BodyLimits {
  readonly maxBodyBytes: number
  readonly maxJsonDepth: number
}

/** @throws HttpError 415, 413, 400, or 499 when the client has disconnected */
export async function readJson(c: Context, limits: BodyLimits): Promise<unknown> {
  const type = c.req.header('content-type') ?? ''
  if (type.split(';')[0]!.trim().toLowerCase() !== 'application/json')
    throw new HttpError(
      415,
      'unsupported_media_type',
      `The content type must be application/json; got ${type === '' ? 'none' : JSON.stringify(type.slice(0, 100))}.`,
    )
  const charset = /;\s*charset="?([^";\s]*)/i.exec(type)?.[1] ?? 'utf-8'
  if (!/^(utf-?8|us-ascii)$/i.test(charset))
    throw new HttpError(
      415,
      'unsupported_media_type',
      `The body must be UTF-8; got the charset ${charset.slice(0, 100)}.`,
    )
  const encoding = c.req.header('content-encoding') ?? 'identity'
  if (encoding.trim().toLowerCase() !== 'identity')
    throw new HttpError(
      415,
      'unsupported_media_type',
      `The body must not be compressed; got the content encoding ${encoding.slice(0, 100)}.`,
    )
  return parseJson(decode(await readBytes(c, limits.maxBodyBytes)), limits.maxJsonDepth)
}

async function readBytes(c: Context, maxBytes: number): Promise<Uint8Array> {
  const tooLarge = () =>
    new HttpError(413, 'body_too_large', `The body is larger than ${maxBytes} bytes.`, { connection: 'close' })
  const declared = c.req.header('content-length')
  if (Number(declared ?? 0) > maxBytes) throw tooLarge()
  try {
    if (declared !== undefined) return new Uint8Array(await c.req.arrayBuffer())
    // A chunked body has no declared length, so it is counted as it arrives.
    const parts: Uint8Array[] = []
    let bytes = 0
    for await (const part of c.req.raw.body ?? []) {
      bytes += part.length
      if (bytes > maxBytes) throw tooLarge()
      parts.push(part)
    }
    return Buffer.concat(parts)
  } catch (error) {
    if (error instanceof HttpError) throw error
    // Nobody reads this answer: the client disconnected or was too slow. Proxies use 499 for this.
    throw new HttpError(499, 'client_left', 'The connection ended before the body did.', { connection: 'close' })
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new HttpError(400, 'invalid_utf8', `The body is not valid UTF-8: broken at byte ${firstBroken(bytes)}.`)
  }
}

/** The length of the longest valid prefix. */
function firstBroken(bytes: Uint8Array): number {
  let valid = 0
  let broken = bytes.length
  while (broken - valid > 1) {
    const middle = (valid + broken) >> 1
    try {
      new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, middle), { stream: true })
      valid = middle
    } catch {
      broken = middle
    }
  }
  return valid
}
