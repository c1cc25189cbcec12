// Server errors as text without secrets, and whether a call may have taken effect.
import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError, UnauthorizedError } from '@modelcontextprotocol/client'
import { type ErrorCode, OxbowError } from '@oxbow/core'

/** The code of a generated error response for an answer that never came, for example because its stream ended. */
export const NO_ANSWER = -32_099

const MAX_MESSAGE = 500

/** The request was never sent: it may be sent again. */
const NOT_SENT =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ENOENT|EACCES|CERT_.*|ERR_TLS_.*|DEPTH_ZERO_.*|SELF_SIGNED.*|UNABLE_TO_.*)$/

export type Trouble =
  /** The server refused, or answered with a JSON-RPC error. */
  | 'refused'
  /** The server does not know the session: a new session may send the same request. */
  | 'session'
  | 'unauthorized'
  | 'not_sent'
  /** Sent, and no answer says what became of it. */
  | 'unknown'

/**
 * Statuses that mean the request was not executed, whatever proxies are in between. So do 401, 403 and 404, which have
 * a `Trouble` of their own. A proxy may answer any other status after the server has acted.
 */
const REFUSALS = new Set([400, 405, 413, 415, 422, 429])

/** What an error means for its request. Everything not known to be harmless is `unknown`. */
export function troubleOf(error: unknown): Trouble {
  if (error instanceof ProtocolError) return error.code === NO_ANSWER ? 'unknown' : 'refused'
  if (error instanceof UnauthorizedError) return 'unauthorized'
  if (error instanceof SdkHttpError) {
    const { status = 0 } = error
    if (status === 404) return 'session'
    if (status === 401 || status === 403) return 'unauthorized'
    return REFUSALS.has(status) || rpcErrorIn(error) !== undefined ? 'refused' : 'unknown'
  }
  if (codesOf(error).some((it) => NOT_SENT.test(it))) return 'not_sent'
  return error instanceof SdkError && NEVER_SENT.has(error.code) ? 'not_sent' : 'unknown'
}

const NEVER_SENT: ReadonlySet<SdkErrorCode> = new Set([
  SdkErrorCode.NotConnected,
  SdkErrorCode.CapabilityNotSupported,
  SdkErrorCode.MethodNotSupportedByProtocolVersion,
])

/** Servers answer 400 or 404 for an unknown session. A second request has to show whether this is one. */
export const mayBeUnknownSession = (error: unknown): boolean =>
  error instanceof SdkHttpError && (error.status === 400 || error.status === 404)

/** The message of a JSON-RPC error in the body of an HTTP error. */
function rpcErrorIn(error: SdkHttpError): string | undefined {
  try {
    const { jsonrpc, error: given } = JSON.parse(bodyOf(error)) as {
      jsonrpc?: unknown
      error?: { code?: unknown; message?: unknown }
    }
    return jsonrpc === '2.0' && typeof given?.code === 'number' ? String(given.message ?? given.code) : undefined
  } catch {
    return undefined
  }
}

const bodyOf = ({ data }: SdkHttpError): string => (typeof data?.text === 'string' ? data.text : '')

/** The codes of an error and of its causes. */
function codesOf(error: unknown): string[] {
  if (!(error instanceof Error)) return []
  const { code, errors } = error as { code?: unknown; errors?: readonly unknown[] }
  return [...(typeof code === 'string' ? [code] : []), ...codesOf(error.cause), ...(errors ?? []).flatMap(codesOf)]
}

function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof SdkHttpError && error.status !== undefined) return httpWords(error)
  if (error instanceof SdkError && error.code === SdkErrorCode.InvalidResult)
    return 'its answer does not fit the protocol'
  if (error.name === 'ZodError') return 'its answer is not a JSON-RPC message'
  if (error instanceof SyntaxError) return 'its answer is not JSON'
  if (error.name === 'TimeoutError') return 'no answer in time'
  // The innermost message has the reason: `fetch failed` does not.
  if (!error.message.endsWith('fetch failed')) return error.message
  const { cause, data } = error as { cause?: unknown; data?: { cause?: unknown } }
  const inner = cause ?? data?.cause
  if (!(inner instanceof Error)) return error.message
  return inner.message.endsWith('fetch failed') ? wordsOf(inner) : inner.message || codesOf(inner).join(' ')
}

function httpWords(error: SdkHttpError): string {
  const { status } = error
  const text = bodyOf(error)
  const said = rpcErrorIn(error) ?? (/^\s*</.test(text) ? 'an HTML page' : text.trim())
  if (said !== '') return `HTTP ${status}: ${said}`
  // Redirects that were not followed have no body, and a message that names their target.
  return error.message.includes('Redirect') ? error.message : `HTTP ${status}`
}

/** For people and models. The cause is dropped because it may hold headers. */
export function mcpError(code: ErrorCode, message: string, options: { retryable?: boolean } = {}): OxbowError {
  return new OxbowError(code, message, options)
}

/** An error's message, in one line without secrets. */
export function wordsFor(error: unknown, redact: (text: string) => string): string {
  return redact(wordsOf(error)).replace(/\s+/g, ' ').trim().slice(0, MAX_MESSAGE)
}
