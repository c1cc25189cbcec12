// What went wrong with a server, in words that hold no secret, and whether a call may have taken effect.
import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError, UnauthorizedError } from '@modelcontextprotocol/client'
import { type ErrorCode, OxbowError } from '@oxbow/core'

/** The code of an answer that we put in place of one that never came: its stream ended before. */
export const NO_ANSWER = -32_099

const MAX_MESSAGE = 500

/** The request never left: it may be sent again. */
const NOT_SENT =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ENOENT|EACCES|CERT_.*|ERR_TLS_.*|DEPTH_ZERO_.*|SELF_SIGNED.*|UNABLE_TO_.*)$/

export type Trouble =
  /** The server said no, or said that it failed. */
  | 'refused'
  /** The session is gone: a new one may do the same. */
  | 'session'
  | 'unauthorized'
  | 'not_sent'
  /** Sent, and no answer that tells what became of it. */
  | 'unknown'

export function troubleOf(error: unknown): Trouble {
  if (error instanceof ProtocolError) return error.code === NO_ANSWER ? 'unknown' : 'refused'
  if (error instanceof UnauthorizedError) return 'unauthorized'
  if (error instanceof SdkHttpError) {
    const { status = 0 } = error
    if (status === 404 || status === 410) return 'session'
    if (status === 401 || status === 403) return 'unauthorized'
    return status === 502 || status === 504 || status < 400 ? 'unknown' : 'refused'
  }
  if (error instanceof SdkError) {
    const before: SdkErrorCode[] = [
      SdkErrorCode.NotConnected,
      SdkErrorCode.CapabilityNotSupported,
      SdkErrorCode.MethodNotSupportedByProtocolVersion,
    ]
    return before.includes(error.code) ? 'not_sent' : 'unknown'
  }
  return codesOf(error).some((it) => NOT_SENT.test(it)) ? 'not_sent' : 'unknown'
}

/** The codes of an error and of its causes. */
function codesOf(error: unknown): string[] {
  if (!(error instanceof Error)) return []
  const { code, errors } = error as { code?: unknown; errors?: readonly unknown[] }
  return [...(typeof code === 'string' ? [code] : []), ...codesOf(error.cause), ...(errors ?? []).flatMap(codesOf)]
}

/** The innermost message says the most: `fetch failed` says nothing. */
function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (!error.message.endsWith('fetch failed')) return error.message
  const { cause, data } = error as { cause?: unknown; data?: { cause?: unknown } }
  const inner = cause ?? data?.cause
  if (!(inner instanceof Error)) return error.message
  return inner.message.endsWith('fetch failed') ? wordsOf(inner) : inner.message || codesOf(inner).join(' ')
}

/** For people and models. The cause is not kept: it may hold headers. */
export function mcpError(code: ErrorCode, message: string, options: { retryable?: boolean } = {}): OxbowError {
  return new OxbowError(code, message, options)
}

export function wordsFor(error: unknown, redact: (text: string) => string): string {
  return redact(wordsOf(error)).replace(/\s+/g, ' ').trim().slice(0, MAX_MESSAGE)
}
