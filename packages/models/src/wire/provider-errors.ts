// What went wrong at a provider, as a ModelError: a typed code, a message that is safe to show and names the fix, and
// the provider's own words, clipped, in `details`.
import { ModelError, type ModelErrorCode, type ModelReply } from '@oxbow/core'
import { addressOf, type Scrub, scrubbedError } from './secrets.ts'

export interface ErrorContext {
  readonly provider: string
  readonly model: string
  readonly baseUrl: string
  /** What the driver adds to the base URL, and how its format is called. */
  readonly path: string
  readonly format: string
  /** Takes out what must not be shown when a provider repeats it. */
  readonly scrub: Scrub
  /** The environment variable that holds the key, where one is known. */
  readonly keyVariable?: string | undefined
}

/** How providers say that a conversation is too long. A limit of the answer (`max_tokens is too large`) is not meant. */
const overflow = new RegExp(
  [
    'context.?length.?exceeded',
    'exceed_context',
    'request_too_large',
    'maximum (context|prompt|input) length',
    'prompt (is |tokens )?(too long|超长)',
    'prompt exceeds max',
    'input (token )?length.{0,60}(exceed|too long)',
    'range of input length',
    '(exceed|overflow|(larger|longer|greater) than|too large).{0,60}context',
    'longer than the maximum model length',
    'context.?(window|length|size|limit).{0,40}(exceed|overflow)',
    'exceeded model token limit',
    'total tokens.{0,40}exceed',
    'too many (input )?tokens',
    '(input|prompt) token count.{0,60}exceed',
    'must be less than max_seq_len',
    '`inputs` tokens \\+ `max_new_tokens` must be',
    'max \\d+ tokens per request',
    'input is too long',
    'reduce the length of (the|your) (messages|prompt|input)',
  ].join('|'),
  'i',
)

/** An answer with a status of 400 or more. */
export function httpError(context: ErrorContext, status: number, headers: Headers, body: string): ModelError {
  const error = parseError(body)
  return build(context, status, error, {
    retryAfterMs: retryAfter(headers) ?? retryDelay(body),
    requestId: headers.get('x-request-id') ?? headers.get('request-id') ?? error.requestId,
    body,
  })
}

/** An error object inside an answer with status 200. */
export function frameError(
  context: ErrorContext,
  error: unknown,
  partial: { readonly partial?: ModelReply },
): ModelError {
  const body = JSON.stringify(typeof error === 'string' ? { error: { message: error } } : { error })
  const parsed = parseError(body)
  return build(context, parsed.status, parsed, { ...partial, body, requestId: parsed.requestId })
}

/** `fetch` failed before an answer came. */
export function networkError(context: ErrorContext, cause: unknown): ModelError {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
  // A code is safe to show; a message may repeat the address with all that is in it.
  const { code, name } = (inner ?? {}) as { readonly code?: unknown; readonly name?: unknown }
  const reason = typeof code === 'string' ? code : String(name)
  return new ModelError(
    'provider_error',
    `Could not reach ${context.provider} at ${addressOf(context.baseUrl)} (${reason}). Check the base URL and the network.`,
    { retryable: true, cause: scrubbedError(context.scrub, cause) },
  )
}

/** The endpoint sent us elsewhere. `location` as it came, relative or not. */
export function redirectError(context: ErrorContext, status: number, location: string | null): ModelError {
  const from = `${context.baseUrl.replace(/\/+$/, '')}${context.path}`
  const to = location !== null && URL.canParse(location, from) ? addressOf(new URL(location, from).href) : undefined
  const where =
    to === undefined
      ? 'elsewhere'
      : `to ${clip(context.scrub(to.endsWith(context.path) ? to.slice(0, to.length - context.path.length) : to), 300)}`
  return new ModelError(
    'invalid_request',
    `${context.provider} redirects ${addressOf(context.baseUrl)} ${where}. Nothing is sent there on its word: set the base URL to the address that is meant.`,
    { status, details: { at: 'address' } },
  )
}

/** The body, or a frame of it, was nothing that this format knows. */
export function bodyError(
  context: ErrorContext,
  body: string,
  hint: string,
  options: { readonly retryable?: boolean; readonly partial?: ModelReply } = {},
): ModelError {
  const message = `${context.provider} did not answer in the format of ${context.format}. ${hint}`
  return new ModelError('provider_error', message, { details: { body: clip(context.scrub(body), 2000) }, ...options })
}

export function nativeFormatError(context: ErrorContext): ModelError {
  return new ModelError(
    'invalid_request',
    `${context.provider} answered in DashScope's own format, which is not supported. ` +
      'Use its OpenAI-compatible base URL: https://dashscope.aliyuncs.com/compatible-mode/v1',
  )
}

/** Tools that the provider runs itself, or that need a client of its own, answered and nobody else did. */
export function unreadError(
  context: ErrorContext,
  kinds: readonly string[],
  partial: { readonly partial?: ModelReply },
): ModelError {
  const message =
    `${context.provider} answered with nothing but ${[...new Set(kinds)].join(', ')}, which cannot be read here. ` +
    "Take the tools that make it out of the model's options."
  return new ModelError('invalid_request', message, partial)
}

interface ParsedError {
  readonly message: string
  readonly type: string
  readonly status: number | undefined
  readonly requestId: string | undefined
}

/** Reads the shapes in which providers tell errors: `{error: {…}}`, `{error: "…"}`, `{message, code}`, `{detail}`. */
function parseError(body: string): ParsedError {
  let root: Record<string, unknown> = {}
  try {
    const parsed: unknown = JSON.parse(body)
    const first: unknown = Array.isArray(parsed) ? parsed[0] : parsed
    if (typeof first === 'object' && first !== null) root = first as Record<string, unknown>
  } catch {
    // Plain text or a web page: nothing to take out of it.
  }
  const nested = root.error ?? root
  const error = (typeof nested === 'object' && nested !== null ? nested : { message: nested }) as Record<
    string,
    unknown
  >
  const words = [error.message, error.msg, error.status_msg, error.detail, root.message, root.detail]
  const message = words.find((word) => typeof word === 'string' && word !== '')
  const codes = [error.code, error.type, error.status]
  const status = [error.code, error.status, error.status_code, root.status].map(Number).find((n) => n >= 400 && n < 600)
  const requestId = root.request_id ?? error.request_id
  return {
    message: (message as string | undefined) ?? '',
    type: codes.filter((code) => typeof code === 'string').join(' '),
    status,
    requestId: typeof requestId === 'string' ? requestId : undefined,
  }
}

function build(
  context: ErrorContext,
  status: number | undefined,
  error: ParsedError,
  extra: {
    readonly retryAfterMs?: number | undefined
    readonly requestId?: string | undefined
    readonly body: string
    readonly partial?: ModelReply
  },
): ModelError {
  const text = `${error.type} ${error.message}`
  const { code, retryable } = classify(status, text, extra.body)
  const said = code === 'auth' ? '' : clean(context, error.message)
  const saying = said === '' ? '' : ` It says: ${said}`
  const http = status === undefined ? '' : ` (HTTP ${status})`
  return new ModelError(code, advice(context, code, retryable, http, status) + saying, {
    retryable,
    details: {
      body: clip(context.scrub(extra.body), 2000),
      // Once more by itself: what logs it may not want to quote a provider, who may quote the conversation.
      ...(said === '' ? {} : { said }),
      ...(code === 'invalid_request' && (status === 404 || unknownModel.test(text)) && { at: 'model' }),
      ...(extra.requestId === undefined ? {} : { requestId: context.scrub(extra.requestId) }),
    },
    ...(status === undefined ? {} : { status }),
    ...(extra.retryAfterMs === undefined ? {} : { retryAfterMs: extra.retryAfterMs }),
    ...(extra.partial === undefined ? {} : { partial: extra.partial }),
  })
}

/** Not the request is wrong but the moment. 424: the model of Bedrock failed behind its door. */
const passing = new Set([408, 409, 424, 425])

/** What providers say of a model that they do not have, with status 400 instead of 404. */
const unknownModel =
  /model.{0,60}(?:not.?found|not.?exist)|(?:unknown|no such|invalid) model|model_not_found|InvalidEndpointOrModel/i

function classify(
  status: number | undefined,
  text: string,
  body: string,
): { code: ModelErrorCode; retryable: boolean } {
  // Google tells a wrong key with status 400.
  if (status === 401 || status === 403 || body.includes('API_KEY_INVALID')) return { code: 'auth', retryable: false }
  // Waiting does not fill an account. Google speaks of billing also where it says how long to wait.
  const spent = /insufficient.?(quota|balance)|billing|arrear/i.test(text) && retryDelay(body) === undefined
  if (
    status === 429 ||
    (status === 400 && /arrear/i.test(text)) ||
    (status === undefined && (spent || /rate.?limit|too many requests/i.test(text)))
  ) {
    return { code: 'rate_limited', retryable: !spent }
  }
  const refusedInput = status === undefined || (status >= 400 && status < 500 && status !== 404)
  if (refusedInput && overflow.test(text.trim() === '' ? body : text))
    return { code: 'context_overflow', retryable: false }
  if (status === 503 || status === 529 || /overloaded|server_is_busy|insufficient_system_resource/i.test(text)) {
    return { code: 'overloaded', retryable: true }
  }
  // 421 and 499 tell of proxies on the way, and once more by the same way helps nobody.
  if (status === 421 || status === 499) return { code: 'provider_error', retryable: false }
  if (status !== undefined && status >= 400 && status < 500 && !passing.has(status)) {
    return { code: 'invalid_request', retryable: false }
  }
  if (status === undefined && /invalid_request|invalid_api_key|authentication|permission_error/i.test(text)) {
    return { code: /key|auth|permission_error/i.test(text) ? 'auth' : 'invalid_request', retryable: false }
  }
  return { code: 'provider_error', retryable: true }
}

function advice(
  context: ErrorContext,
  code: ModelErrorCode,
  retryable: boolean,
  http: string,
  status: number | undefined,
): string {
  const { provider, model } = context
  switch (code) {
    case 'auth':
      return `${provider} refused the API key${http}. Check ${context.keyVariable ?? 'the key'} and that it may use ${model}.`
    case 'rate_limited':
      return retryable
        ? `${provider} limits the rate of requests${http}. Wait and try again, or ask for a higher limit.`
        : `The account at ${provider} has no quota left${http}. Check its plan and billing.`
    case 'overloaded':
      return `${provider} is overloaded${http}. Try again in a moment.`
    case 'context_overflow':
      return `The conversation is longer than ${model} can read${http}. Shorten it.`
    case 'invalid_request':
      if (status === 404)
        return `${provider} knows no ${model} at ${addressOf(context.baseUrl)}${http}. Check the model's name and the base URL.`
      if (status === 402) return `The account at ${provider} has no credit left${http}. Top it up.`
      return `${provider} refused the request${http}. Check the model's name and the options.`
    default:
      return `${provider} failed${http}. Try again.`
  }
}

const MAX_RETRY_AFTER_MS = 120_000

/** Seconds or an HTTP date (and Azure's milliseconds), at most two minutes; anything else is ignored. */
function retryAfter(headers: Headers): number | undefined {
  const value = headers.get('retry-after')?.trim() ?? ''
  const millis = headers.get('retry-after-ms')?.trim() ?? ''
  const isNumber = /^\d+(\.\d+)?$/
  const ms = isNumber.test(millis)
    ? Number(millis)
    : isNumber.test(value)
      ? Number(value) * 1000
      : /^[A-Z][a-z]+, .* GMT$/.test(value)
        ? Date.parse(value) - Date.now()
        : Number.NaN
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(0, Math.round(ms)), MAX_RETRY_AFTER_MS)
}

/** Google's, inside the body. */
function retryDelay(body: string): number | undefined {
  const seconds = /"retryDelay":\s*"(\d+(?:\.\d+)?)s"/.exec(body)?.[1]
  return seconds === undefined ? undefined : Math.min(Math.ceil(Number(seconds) * 1000), MAX_RETRY_AFTER_MS)
}

const clip = (text: string, length: number): string => {
  const line = text.trim()
  return line.length <= length ? line : `${line.slice(0, length)}…`
}

/** Words of others, short and without secrets. */
export const clean = (context: ErrorContext, text: string): string => clip(context.scrub(text), 300)
