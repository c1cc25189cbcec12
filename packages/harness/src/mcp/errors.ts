// What went wrong with a server, in words that hold no secret, and whether a call may have taken effect.
import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError, UnauthorizedError } from '@modelcontextprotocol/client'
import { OxbowError } from '@oxbow/core'
import { isStdio, type McpServer } from './options.ts'

/** The code of an answer that we put in place of one that never came: its stream ended before. */
export const NO_ANSWER = -32_099

const MIN_SECRET = 4
const MAX_MESSAGE = 500

/** Replaces what the configuration of the server has said in confidence. */
export function redactor(server: McpServer): (text: string) => string {
  const given = isStdio(server)
    ? Object.values(server.env ?? {})
    : [
        ...Object.values(server.headers ?? {}),
        ...(server.auth !== undefined && 'clientSecret' in server.auth ? [server.auth.clientSecret ?? ''] : []),
        ...secretsOf(server.url),
      ]
  const secrets = given
    .flatMap((it) => [it, ...it.split(/\s+/)])
    .filter((it) => it.length >= MIN_SECRET)
    .sort((a, b) => b.length - a.length)
  return (text) => secrets.reduce((done, it) => done.replaceAll(it, '…'), text)
}

/** An address may hold a password, or a key in its query. */
function secretsOf(url: string): string[] {
  const { username, password, search, searchParams } = new URL(url)
  return [username, password, search, ...searchParams.values()].flatMap((it) => [it, decodeURIComponent(it)])
}

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
  const { cause } = error
  if (error.message === 'fetch failed' && cause instanceof Error) return cause.message || codesOf(cause).join(' ')
  return error.message
}

/** For people and models. The cause is not kept: it may hold headers. */
export function mcpError(code: string, message: string, options: { retryable?: boolean } = {}): OxbowError {
  return new OxbowError(code, message, options)
}

export function wordsFor(error: unknown, redact: (text: string) => string): string {
  return redact(wordsOf(error)).replace(/\s+/g, ' ').trim().slice(0, MAX_MESSAGE)
}
